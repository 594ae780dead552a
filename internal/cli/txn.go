package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func txnCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "txn", Aliases: []string{"transaction", "transactions"}, Short: "Show and end transactions of producers",
		Example: `  leat txn list --state Ongoing
  leat txn describe payments-1
  leat txn producers payments
  leat txn abort payments-1
  leat txn abort --topic payments --partition 0 --start-offset 4711`,
	}
	brokers := brokerFlag(cmd)
	cmd.AddCommand(txnList(brokers), txnDescribe(brokers), txnProducers(brokers), txnAbort(brokers))
	return cmd
}

// txnRow is a transactional id in a list.
type txnRow struct {
	ID          string `json:"transactional_id" col:"TRANSACTIONAL-ID"`
	State       string `json:"state"`
	Producer    int64  `json:"producer_id" col:"PRODUCER-ID"`
	Coordinator int32  `json:"coordinator"`
}

func txnList(brokers *string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List transactional ids", Args: cobra.NoArgs}
	out := outputFlag(cmd)
	states := wordsFlag(cmd, "state", []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead"}, "only those in this state")
	producers := numbersFlag[int64](cmd.Flags(), "producer-id", "", "only those of this producer; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			list, err := a.ListTransactions(cmd.Context(), producers.list, states.list)
			if err != nil {
				return refused("transactions", err, "")
			}
			var rows []txnRow
			for _, t := range list.Sorted() {
				rows = append(rows, txnRow{t.TxnID, t.State, t.ProducerID, t.Coordinator})
			}
			return out.list(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

// describedTxn is what there is to know of a transactional id.
type describedTxn struct {
	ID          string     `json:"transactional_id" col:"TRANSACTIONAL-ID"`
	State       string     `json:"state"`
	Producer    int64      `json:"producer_id" col:"PRODUCER-ID"`
	Epoch       int16      `json:"producer_epoch" col:"EPOCH"`
	Coordinator int32      `json:"coordinator"`
	Timeout     seconds    `json:"timeout_seconds" col:"TIMEOUT"`
	Started     *time.Time `json:"started"`
	Age         *seconds   `json:"age_seconds" col:"AGE"`
	Partitions  []string   `json:"partitions"`
}

func txnDescribe(brokers *string) *cobra.Command {
	cmd := &cobra.Command{Use: "describe TRANSACTIONAL-ID...", Short: "Show transactional ids, with what their transaction has written to", Args: cobra.MinimumNArgs(1)}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			all, err := a.DescribeTransactions(cmd.Context(), names...)
			if err != nil {
				return refused("transactions", err, "")
			}
			return eachNamed(names, func(name string) error {
				t, ok := all[name]
				if t.Err != nil || !ok {
					return refused(fmt.Sprintf("transactional id %q", name), cmpErr(t.Err, errors.New("not described")), "")
				}
				d := describedTxn{
					ID: t.TxnID, State: t.State, Producer: t.ProducerID, Epoch: t.ProducerEpoch, Coordinator: t.Coordinator,
					Timeout: seconds(float64(t.TimeoutMillis) / 1000), Partitions: []string{},
				}
				d.Started = timeOf(t.StartTimestamp)
				if d.Started != nil && !strings.HasPrefix(t.State, "Complete") { // what is over has no age
					age := seconds(time.Since(*d.Started).Seconds())
					d.Age = &age
				}
				for _, ps := range t.Topics.Sorted() {
					slices.Sort(ps.Partitions)
					for _, p := range ps.Partitions {
						d.Partitions = append(d.Partitions, fmt.Sprintf("%s-%d", ps.Topic, p))
					}
				}
				return out.describe(cmd.OutOrStdout(), d)
			})
		})
	}
	return cmd
}

// timeOf is a time in milliseconds as the protocol has it, where -1 is none.
func timeOf(ms int64) *time.Time {
	if ms == -1 {
		return nil
	}
	at := time.UnixMilli(ms).UTC()
	return &at
}

func cmpErr(err, or error) error {
	if err != nil {
		return err
	}
	return or
}

// producerRow is a producer that has written to a partition.
type producerRow struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Producer  int64      `json:"producer_id" col:"PRODUCER-ID"`
	Epoch     int16      `json:"producer_epoch" col:"EPOCH"`
	Sequence  int32      `json:"last_sequence" col:"SEQUENCE"`
	Last      *time.Time `json:"last_timestamp" col:"LAST-WRITE"` // none: its last batch has no timestamp
	TxnStart  *int64     `json:"transaction_start_offset" col:"TXN-START"`
}

func txnProducers(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "producers TOPIC", Short: "Show the idempotent and transactional producers of a topic", Args: cobra.ExactArgs(1), ValidArgsFunction: completeTopics,
		Long: "Shows the producers that a topic's partitions remember. TXN-START is the first offset of an open transaction: what lies behind it is held\n" +
			"back from consumers that read committed records only.",
	}
	out := outputFlag(cmd)
	partitions := numbersFlag[int32](cmd.Flags(), "partition", "p", "only of this partition; may be repeated")
	open := cmd.Flags().Bool("open", false, "only those with an open transaction")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		topic := args[0]
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			topics, err := a.ListTopics(cmd.Context(), topic)
			if err != nil {
				return err
			}
			if err := topics[topic].Err; err != nil {
				return refused(fmt.Sprintf("topic %q", topic), err, "")
			}
			set := kadm.TopicsSet{}
			set.Add(topic, topics[topic].Partitions.Numbers()...)
			if len(partitions.list) > 0 {
				set = kadm.TopicsSet{}
				set.Add(topic, partitions.list...)
			}
			described, err := a.DescribeProducers(cmd.Context(), set)
			if err != nil {
				return refused(fmt.Sprintf("topic %q", topic), err, "")
			}
			var rows []producerRow
			for _, p := range described.SortedPartitions() {
				if p.Err != nil {
					return refused(fmt.Sprintf("%s-%d", p.Topic, p.Partition), p.Err, p.ErrMessage)
				}
				for _, pr := range p.ActiveProducers.Sorted() {
					row := producerRow{Topic: p.Topic, Partition: p.Partition, Producer: pr.ProducerID, Epoch: pr.ProducerEpoch, Sequence: pr.LastSequence, Last: timeOf(pr.LastTimestamp)}
					if pr.CurrentTxnStartOffset >= 0 {
						row.TxnStart = &pr.CurrentTxnStartOffset
					}
					if row.TxnStart != nil || !*open {
						rows = append(rows, row)
					}
				}
			}
			return out.list(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func txnAbort(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "abort [TRANSACTIONAL-ID]", Short: "End an open transaction", Args: cobra.MaximumNArgs(1),
		Long: "With a transactional id: takes it over from its producer, whose transaction is aborted and who can write no more with it.\n" +
			"With --topic, --partition and --start-offset: writes the abort marker of a transaction that hangs, one that its coordinator has lost; `leat txn\n" +
			"producers` shows where one starts. (Leat's own cannot hang: a transaction ends in one journal entry.)",
	}
	topic := cmd.Flags().StringP("topic", "t", "", "topic of a hanging transaction")
	var (
		partition int32
		start     int64
	)
	numberFlag(cmd.Flags(), &partition, "partition", "p", -1, 0, math.MaxInt32, "its partition")
	numberFlag(cmd.Flags(), &start, "start-offset", "", -1, 0, math.MaxInt64, "offset that the transaction starts at")
	cmd.MarkFlagsRequiredTogether("topic", "partition", "start-offset")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 1) == (*topic != "") {
			return usage("either a transactional id, or --topic, --partition and --start-offset: which transaction?")
		}
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			if *topic != "" {
				return abortHanging(cmd, a, *topic, partition, start)
			}
			return abortByID(cmd, a, args[0])
		})
	}
	return cmd
}

// abortByID begins the transactional id anew, which ends its open transaction and fences its producer.
func abortByID(cmd *cobra.Command, a *cluster, id string) error {
	about := fmt.Sprintf("transactional id %q", id)
	all, err := a.DescribeTransactions(cmd.Context(), id)
	if err != nil {
		return refused(about, err, "")
	}
	t := all[id]
	if t.Err != nil {
		return refused(about, t.Err, "")
	}
	if t.State != "Ongoing" {
		return fmt.Errorf("%s has no open transaction: it is %s", about, t.State)
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &id
	req.TransactionTimeoutMillis = t.TimeoutMillis
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(cmd.Context(), a.kafka)
	if err != nil {
		return refused(about, err, "")
	}
	if err := answer(about, resp.ErrorCode, nil); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "aborted the transaction of %s; its producer, %d in epoch %d, is fenced\n", id, t.ProducerID, t.ProducerEpoch)
	return nil
}

// abortHanging writes the abort marker of a transaction into its partition.
func abortHanging(cmd *cobra.Command, a *cluster, topic string, partition int32, start int64) error {
	about := fmt.Sprintf("%s-%d", topic, partition)
	set := kadm.TopicsSet{}
	set.Add(topic, partition)
	described, err := a.DescribeProducers(cmd.Context(), set)
	if err != nil {
		return refused(about, err, "")
	}
	var found *kadm.DescribedProducer
	var open []string
	for _, p := range described.SortedPartitions() {
		if p.Err != nil {
			return refused(about, p.Err, p.ErrMessage)
		}
		for _, pr := range p.ActiveProducers.Sorted() {
			if pr.CurrentTxnStartOffset >= 0 {
				open = append(open, fmt.Sprint(pr.CurrentTxnStartOffset))
			}
			if pr.CurrentTxnStartOffset == start {
				found = &pr
			}
		}
	}
	if found == nil {
		if len(open) == 0 {
			return fmt.Errorf("%s has no open transaction", about)
		}
		return fmt.Errorf("%s has no open transaction that starts at %d; those there are start at %s", about, start, strings.Join(open, ", "))
	}
	answers, err := a.WriteTxnMarkers(cmd.Context(), kadm.TxnMarkers{
		ProducerID: found.ProducerID, ProducerEpoch: found.ProducerEpoch, CoordinatorEpoch: max(found.CoordinatorEpoch, 0), Topics: set,
	})
	if err != nil {
		return refused(about, err, "")
	}
	for _, p := range answers.SortedPartitions() {
		if p.Err != nil {
			return refused(about, p.Err, "")
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "aborted the transaction of producer %d that started at offset %d of %s\n", found.ProducerID, start, about)
	return nil
}
