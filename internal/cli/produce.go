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

	mu     sync.Mutex // guards what follows, and out
	failed error
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
		if end && len(line) == 0 || p.failure() != nil {
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
	case err != nil:
		remedy := ""
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			remedy = remedies[kerr.UnknownTopicOrPartition]
		}
		if p.partition >= 0 && strings.Contains(err.Error(), "invalid record partitioning") {
			remedy = fmt.Sprintf("--partition %d: `leat topic describe %s` shows the partitions it has", p.partition, r.Topic)
		}
		if remedy != "" {
			err = fmt.Errorf("%w (%s)", err, remedy)
		}
		p.failed = fmt.Errorf("line %d: %w", line, err)
	case p.output.json:
		p.failed = writeJSON(p.out, producedJSON{r.Topic, r.Partition, r.Offset, r.Timestamp.UTC()})
	}
}

func (p *producing) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
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
