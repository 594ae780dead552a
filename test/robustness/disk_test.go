package robustness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/testlog"
	"github.com/leat-io/leat/internal/vfs"
)

const patience = 60 * time.Second

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-ticker.C {
		if ask() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, patience)
}

func kafka(t *testing.T, n *node.Node, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(n.KafkaAddr()), kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(0), kgo.MetadataMinAge(20 * time.Millisecond), kgo.RecordRetries(0),
		kgo.DisableIdempotentWrite(), kgo.ProducerBatchMaxBytes(16 << 20),
		kgo.ProduceRequestTimeout(time.Second),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func produce(t *testing.T, c *kgo.Client, topic, key, value string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &kgo.Record{Topic: topic, Value: []byte(value)}
	if key != "" {
		r.Key = []byte(key)
	}
	return c.ProduceSync(ctx, r).FirstErr()
}

// try runs statements and returns the SQLSTATE of the error, "" if there is none.
func try(t *testing.T, n *node.Node, sql string) string {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), "postgres://me@"+n.PostgresAddr()+"/leat?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), sql).ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return ""
}

// start starts a node that is stopped when the test ends.
func start(t *testing.T, c node.Config) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestDiskFills takes the room away from a node that works, first below its reserve and then all of it: writers get an error, readers are served,
// and all goes on by itself when there is room.
func TestDiskFills(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprintf("nothing left=%v", full), func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewFaults(vfs.NewMem())
			var free atomic.Int64
			free.Store(1 << 40)
			c := config("/data")
			c.Core = node.CoreOptions{FS: disk, JournalSegmentBytes: 4 << 20, Broker: broker.Options{Reserve: broker.Reserve{
				MinFree: 64 << 20, BallastBytes: 1 << 20, FreeSpace: func(string) (int64, error) { return free.Load(), nil },
			}}}
			n := start(t, c)
			client := kafka(t, n)
			run(t, n, `CREATE TABLE t (k int PRIMARY KEY); CREATE SOURCE s (k int) WITH (connector='kafka', topic='s') FORMAT PLAIN ENCODE JSON;
				CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(k) AS total FROM s; INSERT INTO t VALUES (1)`)
			if err := produce(t, client, "s", "", `{"k":1}`); err != nil {
				t.Fatal(err)
			}
			// What no epoch holds yet when the room ends is not seen until there is room.
			run(t, n, `FLUSH`)
			free.Store(1 << 20)
			disk.Fill(full)
			eventually(t, "a producer is refused", func() bool {
				return errors.Is(produce(t, client, "s", "", `{"k":0}`), kerr.KafkaStorageError)
			})
			if code := try(t, n, `INSERT INTO t VALUES (2)`); code != "53100" {
				t.Errorf("INSERT on a full disk: SQLSTATE %q, want 53100", code)
			}
			if got := run(t, n, `SELECT count(*) FROM t`); got != "1" {
				t.Errorf("%s rows can be read, want 1", got)
			}
			if err := n.Ready(); err == nil {
				t.Error("a node that refuses writes calls itself ready")
			}
			if got := run(t, n, `SELECT n >= 1 FROM v`); got != "t" {
				t.Errorf("the view: %q", got)
			}
			free.Store(1 << 40)
			disk.Fill(false)
			eventually(t, "a producer is taken", func() bool { return produce(t, client, "s", "", `{"k":1000}`) == nil })
			if code := try(t, n, `INSERT INTO t VALUES (2)`); code != "" {
				t.Errorf("INSERT when there is room again: SQLSTATE %s", code)
			}
			if got := run(t, n, `FLUSH; SELECT total FROM v`); got != "1001" {
				t.Errorf("the view goes on with a total of %s, want 1001", got)
			}
			if err := n.Ready(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStopOnAFullDisk stops a node, idle or with a record on its way, that has no room at all: it ends, and has everything when it is started with room.
func TestStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewFaults(vfs.NewMem())
			c := config("/data")
			c.Core = node.CoreOptions{FS: disk, JournalSegmentBytes: 4 << 20}
			n, err := node.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			run(t, n, `CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1), (2)`)
			client := kafka(t, n)
			if err := produce(t, client, "a", "", "x"); err != nil {
				t.Fatal(err)
			}
			disk.Fill(true)
			if busy { // with a batch that is too large to be collected with others in memory, compressed, too
				noise := make([]byte, 200_000)
				rand.NewChaCha8([32]byte{1}).Read(noise)
				if err := produce(t, client, "a", "", string(noise)); err == nil {
					t.Error("a record was acknowledged that there is no room for")
				}
			}
			stopped := make(chan error, 1)
			go func() { stopped <- n.Stop() }()
			select {
			case err := <-stopped:
				t.Logf("stopped: %v", err)
			case <-time.After(patience):
				t.Fatal("the node does not stop")
			}
			disk.Fill(false)
			again := start(t, c)
			if got := run(t, again, `FLUSH; SELECT count(*) FROM t`); got != "2" {
				t.Errorf("%s rows, want 2", got)
			}
			if err := produce(t, kafka(t, again), "a", "", "z"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFailedSyncEndsAcknowledging checks that nothing is acknowledged after a sync of the journal has failed.
func TestFailedSyncEndsAcknowledging(t *testing.T) {
	t.Parallel()
	disk := vfs.NewFaults(vfs.NewMem())
	c := config("/data")
	c.Core = node.CoreOptions{FS: disk, JournalSegmentBytes: 4 << 20}
	n, err := node.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	client := kafka(t, n)
	if err := produce(t, client, "a", "", "x"); err != nil {
		t.Fatal(err)
	}
	disk.FailSync("journal", syscall.EIO)
	if err := produce(t, client, "a", "", "y"); err == nil {
		t.Error("a record was acknowledged although it could not be synced")
	}
	disk.FailSync("", nil)
	if err := produce(t, client, "a", "", "z"); err == nil {
		t.Error("a record was acknowledged after a failed sync")
	}
	select {
	case <-n.Journal.Done():
	case <-time.After(patience):
		t.Error("the node does not notice that its journal has failed")
	}
	_ = n.Stop()
}

// TestDamagedSegment changes a byte in one partition's file: that partition is refused, with the file named, and all others are served.
func TestDamagedSegment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := node.Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	client := kafka(t, n)
	for _, topic := range []string{"good", "bad"} {
		for i := range 50 {
			if err := produce(t, client, topic, "", fmt.Sprintf("%d %s", i, strings.Repeat("x", 200))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "topics", "bad-*", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	content, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 0x20
	if err := os.WriteFile(logs[0], content, 0o644); err != nil {
		t.Fatal(err)
	}
	// A clean stop syncs and indexes what is behind; without indexes the file is read as after a crash.
	for _, pattern := range []string{"*.index", "*.timeindex"} {
		files, _ := filepath.Glob(filepath.Join(dir, "topics", "bad-*", pattern))
		for _, f := range files {
			_ = os.Remove(f)
		}
	}
	messages := &testlog.Text{}
	c := config(dir)
	c.Logger = slog.New(slog.NewTextHandler(messages, &slog.HandlerOptions{Level: slog.LevelWarn}))
	again := start(t, c)
	client = kafka(t, again)
	if err := produce(t, client, "good", "", "more"); err != nil {
		t.Errorf("the other topic: %v", err)
	}
	reader := kafka(t, again, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"good": {0: kgo.NewOffset().AtStart()}}))
	read := 0
	eventually(t, "the other topic is read", func() bool {
		read += len(reader.PollFetches(t.Context()).Records())
		return read == 51
	})
	// Kafka's clients try again for as long as they are told to: the code is the one of a partition whose disk is broken.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = "bad"
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = -2
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	response, err := client.Broker(int(brokerID(t, client))).Request(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := kerr.ErrorForCode(response.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode); !errors.Is(got, kerr.KafkaStorageError) {
		t.Errorf("the offsets of the damaged partition: %v, want KAFKA_STORAGE_ERROR", got)
	}
	if err := produce(t, client, "bad", "", "more"); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("produce to the damaged partition: %v, want KAFKA_STORAGE_ERROR", err)
	}
	said := messages.String()
	if !strings.Contains(said, filepath.Base(logs[0])) || !strings.Contains(said, "a partition is out of service") {
		t.Errorf("the log does not name the damaged file %s: %s", filepath.Base(logs[0]), said)
	}
	t.Log(said)
}

func brokerID(t *testing.T, client *kgo.Client) int32 {
	t.Helper()
	m, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), client)
	if err != nil || len(m.Brokers) == 0 {
		t.Fatalf("metadata: %v", err)
	}
	return m.Brokers[0].NodeID
}

// TestFoldersThatCannotServe are refused with what is wrong, and not touched.
func TestFoldersThatCannotServe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string) string
		want    string
	}{
		"a format of the future": {func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("leat 99\n"), 0o644))
			return dir
		}, `has format "leat 99"`},
		"an empty format": {func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "FORMAT"), nil, 0o644))
			return dir
		}, `has format ""`},
		"a file": {func(t *testing.T, dir string) string {
			file := filepath.Join(dir, "file")
			must(t, os.WriteFile(file, []byte("x"), 0o644))
			return file
		}, "not a directory"},
		"below a file": {func(t *testing.T, dir string) string {
			file := filepath.Join(dir, "file")
			must(t, os.WriteFile(file, []byte("x"), 0o644))
			return filepath.Join(file, "data")
		}, "data folder"},
		"a journal of the future": {func(t *testing.T, dir string) string {
			n, err := node.Start(t.Context(), config(dir))
			must(t, err)
			must(t, n.Stop())
			files, err := filepath.Glob(filepath.Join(dir, "journal", "*"))
			must(t, err)
			for _, f := range files {
				content, err := os.ReadFile(f)
				must(t, err)
				if len(content) > 12 {
					copy(content[8:12], []byte{99, 99, 99, 99})
					must(t, os.WriteFile(f, content, 0o644))
				}
			}
			return dir
		}, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := node.Start(t.Context(), config(test.prepare(t, t.TempDir())))
			if err == nil {
				_ = n.Stop()
				t.Fatal("the node has started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: does not say %q", err, test.want)
			}
			t.Log(err)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
