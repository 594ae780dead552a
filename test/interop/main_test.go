// Package interop shows real clients against a node: franz-go, and librdkafka through kcat.
package interop

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

var seedFlag = flag.Uint64("seed", 1, "seed of the random tests")

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// client connects a franz-go client that is closed when the test ends.
func client(t testing.TB, n *kafkatest.Node, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(n.Addr), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.CloseAllowingRebalance)
	return cl
}

// produce writes records and waits for all of them.
func produce(t testing.TB, cl *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := cl.ProduceSync(within(t), records...).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

// numbered makes n records with the values prefix0, prefix1, ...
func numbered(topic, prefix string, n int) []*kgo.Record {
	out := make([]*kgo.Record, n)
	for i := range out {
		out[i] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s%d", prefix, i)}
	}
	return out
}

// consume reads n records.
func consume(t testing.TB, cl *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx := within(t)
	var out []*kgo.Record
	for len(out) < n {
		fs := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("consumed %d of %d records: %v", len(out), n, err)
		}
		fs.EachError(func(topic string, p int32, err error) { t.Fatalf("fetch %s-%d: %v", topic, p, err) })
		out = append(out, fs.Records()...)
	}
	return out
}

// values are the records' values in order, the partitions one after the other.
func values(rs []*kgo.Record) string {
	var out []string
	for _, r := range rs {
		out = append(out, string(r.Value))
	}
	return strings.Join(out, " ")
}

// kcat runs kcat with input and returns what it prints.
func kcat(t testing.TB, n *kafkatest.Node, input string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("kcat")
	if err != nil {
		t.Skip("kcat is not installed: apt-get install kcat")
	}
	cmd := exec.CommandContext(within(t), path, append([]string{"-b", n.Addr}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %v: %v\n%s", args, err, errs.String())
	}
	return out.String()
}

// cappedAt is what a client may use that knows one API only up to a version.
func cappedAt(key, version int16) *kversion.Versions {
	v := kversion.Tip()
	v.SetMaxKeyVersion(key, version)
	return v
}
