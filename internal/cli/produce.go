package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLine bounds one record of standard input.
const maxLine = 64 << 20

var compressions = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

var acknowledgements = map[string]kgo.Acks{"all": kgo.AllISRAcks(), "-1": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}

// producing is what the flags of produce say.
type producing struct {
	brokers         *string
	key, separator  string
	hasKey          bool // --key is given, if only as the empty key
	acks            string
	compression     string
	headers         []string
	partition       int32
	tombstone       bool
	transactionalID string
	output          *output
	fixedHeaders    []kgo.RecordHeader
	in              io.Reader
	out             io.Writer

	reasons *reasons

	mu     sync.Mutex // guards what follows, and out
	failed error
	// first is the record that failed first, and after are those behind it in its partition that failed, by line: the rest of its batch, and maybe more.
	first  *kgo.Record
	after  []int
	warned map[*kerr.Error]bool
}

func produceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "produce TOPIC", Short: "Produce records from standard input, one a line", Args: cobra.ExactArgs(1), ValidArgsFunction: completeTopics,
		Long: "Reads records from standard input, one a line, and produces them; it ends when all are acknowledged. The first error ends it, with the line it is about.",
		Example: `  leat produce orders < orders.jsonl
  echo 'alice:42' | leat produce balances --key-separator :
  echo 'alice:' | leat produce balances --key-separator : --tombstone
  leat produce logs --compression zstd --header source=web --acks 1 < access.log`,
	}
	p := &producing{brokers: brokerFlag(cmd)}
	f := cmd.Flags()
	f.StringVarP(&p.separator, "key-separator", "K", "", "what ends the key within a line; without it records have no key")
	f.StringVarP(&p.key, "key", "k", "", "the key of every record")
	f.StringArrayVarP(&p.headers, "header", "H", nil, "a header of every record, name=value; may be repeated")
	numberFlag(f, &p.partition, "partition", "p", -1, 0, math.MaxInt32, "partition; without it by the hash of the key, or any")
	f.StringVarP(&p.compression, "compression", "z", "snappy", "none, gzip, snappy, lz4 or zstd")
	f.StringVar(&p.acks, "acks", "all", "when a record counts as produced: all (it is on disk), 1 (the server has it) or 0 (it was sent)")
	f.BoolVarP(&p.tombstone, "tombstone", "Z", false, "an empty value is null: it deletes its key in a compacted topic or a table")
	f.StringVar(&p.transactionalID, "transactional-id", "", "produce all records in one transaction of this id: all of them are seen, or none")
	p.output = outputFlag(cmd)
	f.Lookup("output").Usage = "json: print topic, partition, offset and timestamp of each record that is acknowledged"
	for name, values := range map[string][]string{"compression": {"none", "gzip", "snappy", "lz4", "zstd"}, "acks": {"all", "1", "0"}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.MarkFlagsMutuallyExclusive("key", "key-separator")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.in, p.out, p.hasKey = cmd.InOrStdin(), cmd.OutOrStdout(), p.key != "" || cmd.Flags().Changed("key")
		return p.run(cmd, args[0])
	}
	return cmd
}

func (p *producing) run(cmd *cobra.Command, topic string) error {
	opts, err := p.options(topic)
	if err != nil {
		return err
	}
	p.warned = map[*kerr.Error]bool{}
	p.reasons = newReasons(func(r reason) { p.retried(cmd.ErrOrStderr(), topic, r) })
	if p.acks != "0" { // without acknowledgements there are no answers
		opts = append(opts, kgo.Dialer(p.reasons.dial))
	}
	client, err := connectBrokers(*p.brokers, opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := cmd.Context()
	if err := ping(ctx, client, *p.brokers); err != nil {
		return err
	}
	if p.transactionalID == "" {
		if err := p.lines(cmd, client); err != nil {
			return err
		}
		return p.failure()
	}
	if err := client.BeginTransaction(); err != nil {
		return refused(fmt.Sprintf("transactional id %q", p.transactionalID), err, "")
	}
	err = errors.Join(p.lines(cmd, client), p.failure())
	commit := kgo.TryCommit
	if err != nil {
		commit = kgo.TryAbort
	}
	if ended := client.EndTransaction(ctx, commit); ended != nil {
		err = errors.Join(err, refused(fmt.Sprintf("transactional id %q", p.transactionalID), ended, ""))
	}
	return err
}

func (p *producing) options(topic string) ([]kgo.Opt, error) {
	codec, ok := compressions[p.compression]
	if !ok {
		return nil, usage("--compression %q: none, gzip, snappy, lz4 and zstd are known", p.compression)
	}
	acks, ok := acknowledgements[p.acks]
	if !ok {
		return nil, usage("--acks %q: all, 1 and 0 are known", p.acks)
	}
	for _, h := range p.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return nil, usage("--header %q is not of the form name=value", h)
		}
		p.fixedHeaders = append(p.fixedHeaders, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	opts := []kgo.Opt{
		kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchMaxBytes(1 << 20),
		kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(acks),
	}
	if acks != kgo.AllISRAcks() {
		if p.transactionalID != "" {
			return nil, usage("--acks %s: a transaction needs all", p.acks)
		}
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if p.partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if p.transactionalID != "" {
		opts = append(opts, kgo.TransactionalID(p.transactionalID))
	}
	return opts, nil
}

// lines produces all lines, and waits for them.
func (p *producing) lines(cmd *cobra.Command, client *kgo.Client) error {
	scan := bufio.NewReaderSize(p.in, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(scan)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if end && len(line) == 0 || p.hasFailed() {
			break
		}
		r, err := p.record(line)
		if err != nil { // those before it are produced, and only those
			return errors.Join(fmt.Errorf("line %d: %w", n, err), client.Flush(cmd.Context()))
		}
		client.Produce(cmd.Context(), r, func(r *kgo.Record, err error) { p.done(n, r, err) })
		if end {
			break
		}
	}
	return client.Flush(cmd.Context())
}

func (p *producing) record(line []byte) (*kgo.Record, error) {
	r := &kgo.Record{Value: line, Headers: p.fixedHeaders, Partition: max(p.partition, 0)}
	if p.hasKey {
		r.Key = []byte(p.key)
	}
	if p.separator != "" {
		key, value, ok := bytes.Cut(line, []byte(p.separator))
		if !ok {
			return nil, fmt.Errorf("it has no key separator %q", p.separator)
		}
		r.Key, r.Value = key, value
	}
	switch {
	case len(r.Value) == 0 && p.tombstone:
		r.Value = nil
	case r.Value == nil:
		r.Value = []byte{}
	}
	return r, nil
}

// done takes the answer to one record; it is called from the client's goroutines.
func (p *producing) done(line int, r *kgo.Record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failed != nil:
		if err != nil && p.first != nil && r.Partition == p.first.Partition {
			p.after = append(p.after, line)
		}
	case err != nil && p.partition >= 0 && strings.Contains(err.Error(), "invalid record partitioning"):
		p.failed = fmt.Errorf("line %d: %w (--partition %d: `leat topic describe %s` shows the partitions it has)", line, err, p.partition, r.Topic)
	case err != nil:
		p.failed, p.first, p.after = err, r, append(p.after, line)
	case p.output.json:
		p.failed = writeJSON(p.out, producedJSON{r.Topic, r.Partition, r.Offset, r.Timestamp.UTC()})
	}
}

// retried tells, once for each, of refusals that the client meets by trying again: it may do so for long.
func (p *producing) retried(w io.Writer, topic string, r reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warned[r.code] || r.message == "" {
		return
	}
	p.warned[r.code] = true
	fmt.Fprintln(w, "leat: trying again:", refused(fmt.Sprintf("topic %q", topic), r.code, r.message))
}

// hasFailed says that nothing more is to be sent.
func (p *producing) hasFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed != nil
}

// failure is what went wrong first: which line it is about, what the server says about it, and what can be done. It is whole when all that was sent
// is answered.
func (p *producing) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		return p.failed
	}
	line, message, more := p.after[0], "", ""
	if r, ok := p.reasons.get(p.first.Partition); ok && errors.Is(p.failed, r.code) {
		message = r.message
		// The client answers for the records of a batch in their order, and the batch that failed first is the first of those that failed.
		if len(r.records) > 0 && int(r.records[0].RelativeOffset) < len(p.after) {
			line = p.after[r.records[0].RelativeOffset]
			if m := r.records[0].ErrorMessage; m != nil && *m != "" {
				message = *m
			}
			if n := len(r.records) - 1; n > 0 {
				more = fmt.Sprintf("; %d more of the lines that were sent with it are wrong", n)
			}
		}
		if strings.Contains(message, "no key") {
			more = " (--key-separator and --key give records keys)" + more
		}
		if first, last := p.after[0], p.after[len(p.after)-1]; first < last {
			more += fmt.Sprintf("; nothing of lines %d to %d was written to partition %d: correct and produce them again", first, last, p.first.Partition)
		}
	}
	err := refused(fmt.Sprintf("line %d", line), p.failed, message)
	if more != "" {
		err = fmt.Errorf("%w%s", err, more)
	}
	return err
}

// readLine reads a line without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
}
