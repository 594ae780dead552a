package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLine bounds one record of standard input.
const maxLine = 64 << 20

func produceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "produce TOPIC", Short: "Produce records from standard input, one a line", Args: cobra.ExactArgs(1),
	}
	brokers := brokerFlag(cmd)
	separator := cmd.Flags().String("key-separator", "", "what ends the key within a line; without it records have no key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := connectBrokers(*brokers, kgo.DefaultProduceTopic(args[0]), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchMaxBytes(1<<20))
		if err != nil {
			return err
		}
		defer client.Close()
		ctx := cmd.Context()
		if err := ping(ctx, client, *brokers); err != nil {
			return err
		}
		var mu sync.Mutex
		var failed error
		lines := 0
		scan := bufio.NewReaderSize(cmd.InOrStdin(), 1<<16)
		for {
			line, err := readLine(scan)
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("line %d: %w", lines+1, err)
			}
			if errors.Is(err, io.EOF) && len(line) == 0 {
				break
			}
			lines++
			record := &kgo.Record{Value: line}
			if *separator != "" {
				key, value, ok := bytes.Cut(line, []byte(*separator))
				if !ok { // those before it are produced, and only those
					return errors.Join(fmt.Errorf("line %d has no key separator %q", lines, *separator), client.Flush(ctx))
				}
				record.Key, record.Value = key, value
			}
			n := lines
			client.Produce(ctx, record, func(_ *kgo.Record, err error) {
				if err != nil {
					mu.Lock()
					if failed == nil {
						failed = fmt.Errorf("line %d: %w", n, err)
					}
					mu.Unlock()
				}
			})
			if err != nil {
				break
			}
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return failed
	}
	return cmd
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
