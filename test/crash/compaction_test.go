package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestCompactedLogKeepsItsEnd kills a server behind a compaction that removed every record of the tail (KAFKA-17076), and once more with zeros behind the
// ends of its files, as a crash of the machine leaves them (KAFKA-13664): no offset is given twice, and what was acknowledged is there after the second
// start as after the first.
func TestCompactedLogKeepsItsEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--compaction-interval", "50ms")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := func() *kgo.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.DefaultProduceTopic("t"), kgo.FetchMaxWait(100*time.Millisecond),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := client()
	text := func(s string) *string { return &s }
	r, err := kadm.NewClient(c).CreateTopic(ctx, 1, 1, map[string]*string{
		"cleanup.policy": text("compact"), "internal.segment.bytes": text("100"), "min.cleanable.dirty.ratio": text("0"),
	}, "t")
	if err = errors.Join(err, r.Err); err != nil {
		t.Fatal(err)
	}
	end := int64(0)
	last := map[string]int64{}
	put := func(key string) {
		t.Helper()
		rec, err := c.ProduceSync(ctx, &kgo.Record{Key: []byte(key), Value: []byte("v")}).First()
		if err != nil {
			t.Fatal(err)
		}
		if rec.Offset != end {
			t.Fatalf("%s got the offset %d, and the log ended at %d", key, rec.Offset, end)
		}
		last[key] = rec.Offset
		end++
	}
	// read returns how many records there are, and checks that the last of each key is among them.
	read := func() int {
		t.Helper()
		c := client()
		defer c.Close()
		found, n := map[string]int64{}, 0
		for found["end"] != last["end"] || last["end"] != end-1 {
			if last["end"] != end-1 {
				t.Fatal("the last record must be of the key end")
			}
			fs := c.PollFetches(ctx)
			if err := fs.Err(); err != nil {
				t.Fatal(err)
			}
			fs.EachRecord(func(r *kgo.Record) { found[string(r.Key)] = r.Offset; n++ })
		}
		for k, at := range last {
			if found[k] != at {
				t.Fatalf("the last record of %s is at %d, and was written at %d", k, found[k], at)
			}
		}
		return n
	}
	restart := func() {
		c.Close()
		s.start(nil)
		c = client()
	}
	for range 3 {
		for k := range 5 {
			put(fmt.Sprint("k", k))
		}
	}
	put("end")
	put("end")
	s.mu.Lock()
	cmd, gone := s.cmd, s.gone
	s.mu.Unlock()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // a clean end is a checkpoint
		t.Fatal(err)
	}
	<-gone
	restart()
	eventually(t, ctx, "compaction", func() bool { return read() <= len(last)+1 })
	s.kill()
	restart()
	read()
	put("end")
	s.kill()
	files, err := filepath.Glob(filepath.Join(s.data, "*", "t-0", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	padded := 0
	for i, f := range files {
		lastLog := strings.HasSuffix(f, ".log") && (i+1 == len(files) || !strings.Contains(strings.Join(files[i+1:], " "), ".log"))
		if !lastLog && !strings.HasSuffix(f, "index") {
			continue
		}
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(f, append(b, make([]byte, 4096)...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		padded++
	}
	if padded < 2 {
		t.Fatalf("only %d of %v were padded", padded, files)
	}
	for range 2 {
		restart()
		read()
		put("k1")
		put("end")
		read()
		s.kill()
	}
	restart()
	read()
	c.Close()
}
