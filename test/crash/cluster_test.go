package crash

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var kafkaFlag = flag.String("kafka", "", "the program that starts and stops an Apache Kafka: it is called with start|stop --dir D [--port N] [--kill]; "+
	"`start` prints host:port and pid. Without it a second Leat is the cluster")

// cluster is what Leat reads from and delivers to, outside of it.
type cluster interface {
	servers() string
	restart() // by SIGKILL
}

type leatCluster struct{ s *server }

func (c *leatCluster) servers() string { return c.s.kafka }

func (c *leatCluster) restart() {
	c.s.kill()
	c.s.start(nil)
}

type kafkaCluster struct {
	t    testing.TB
	dir  string
	addr string
}

func newKafkaCluster(t testing.TB) *kafkaCluster {
	t.Helper()
	if out, err := exec.Command("java", "-version").CombinedOutput(); err != nil {
		t.Fatalf("a real Apache Kafka needs a JDK 17 or later (package openjdk-17-jdk-headless), and Maven (package maven) once: java -version: %v %s", err, out)
	}
	c := &kafkaCluster{t: t, dir: t.TempDir()}
	t.Cleanup(func() { _ = exec.Command(*kafkaFlag, "stop", "--dir", c.dir, "--kill").Run() })
	c.start("0")
	return c
}

func (c *kafkaCluster) start(port string) {
	c.t.Helper()
	out, err := exec.Command(*kafkaFlag, "start", "--dir", c.dir, "--port", port).Output()
	if err != nil {
		c.t.Fatalf("%s start: %v", *kafkaFlag, err)
	}
	c.addr, _, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
}

func (c *kafkaCluster) servers() string { return c.addr }

func (c *kafkaCluster) restart() {
	c.t.Helper()
	if out, err := exec.Command(*kafkaFlag, "stop", "--dir", c.dir, "--kill").CombinedOutput(); err != nil {
		c.t.Fatalf("%s stop: %v %s", *kafkaFlag, err, out)
	}
	_, port, _ := strings.Cut(c.addr, ":")
	c.start(port)
}

// TestClusterThroughKills reads a topic of a cluster and writes results into other topics of it, while Leat is killed at random moments and the cluster once. Who
// reads the targets at read_committed sees each result exactly once, and nothing of transactions that were aborted in the source.
func TestClusterThroughKills(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var c cluster
	if *kafkaFlag != "" {
		c = newKafkaCluster(t)
	} else {
		c = &leatCluster{newServer(t)}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.servers()), kgo.RetryTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if _, err := adm.CreateTopic(ctx, 3, 1, nil, "numbers"); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, "--workers", "2")
	at := fmt.Sprintf("connector = 'kafka', properties.bootstrap.server = '%s'", c.servers())
	s.must(
		`CREATE SOURCE numbers (k int, v bigint) WITH (`+at+`, topic = 'numbers') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS n, sum(v)::bigint AS total FROM numbers GROUP BY k`,
		`CREATE SINK copies AS SELECT k, v FROM numbers WITH (`+at+`, topic = 'copies', properties.compression.type = 'none') FORMAT PLAIN ENCODE JSON`,
		`CREATE SINK latest FROM totals WITH (`+at+`, topic = 'latest') FORMAT UPSERT ENCODE JSON`,
	)
	records := min(*recordsFlag, 30_000)
	rng := rand.New(rand.NewPCG(seed, 5))
	feed := &feeder{t: t, c: c, rng: rng}
	k := &killer{s: s, rng: rand.New(rand.NewPCG(seed, 6))}
	kills := max(*killsFlag, 2)
	for round := range kills {
		feed.to(ctx, records*(round+1)/kills)
		if round == kills/2 {
			c.restart()
		}
		k.round(t, ctx, func() bool { return true })
	}
	want := map[int64]int64{}
	for v := range int64(records) {
		want[v%7] += v
	}
	conn, err := s.sql(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	eventually(t, ctx, "all records to be in the view", func() bool {
		var n int64
		return conn.QueryRow(ctx, "SELECT coalesce(sum(n), 0)::bigint FROM totals").Scan(&n) == nil && n >= int64(records)
	})
	eventually(t, ctx, "all results to be delivered", func() bool {
		var lag int64
		var problem *string
		err := conn.QueryRow(ctx, "SELECT sum(outside_lag)::bigint, max(outside_problem) FROM leat_jobs").Scan(&lag, &problem)
		return err == nil && lag == 0 && problem == nil
	})
	for k, total := range want {
		var got int64
		if err := conn.QueryRow(ctx, fmt.Sprintf("SELECT total FROM totals WHERE k = %d", k)).Scan(&got); err != nil || got != total {
			t.Errorf("seed %d: the view has %d for %d, want %d (%v)", seed, got, k, total, err)
		}
	}
	seen := make([]int, records)
	committed := kgo.FetchIsolationLevel(kgo.ReadCommitted())
	readToEnd(t, ctx, c.servers(), "copies", committed, func(r *kgo.Record) {
		var row struct{ K, V int64 }
		if err := json.Unmarshal(r.Value, &row); err != nil || row.V < 0 || row.V >= int64(records) || row.K != row.V%7 {
			t.Fatalf("seed %d: copies has %s (%v)", seed, r.Value, err)
		}
		seen[row.V]++
	})
	wrong := 0
	for v, n := range seen {
		if n != 1 {
			if wrong++; wrong < 10 {
				t.Errorf("seed %d: %d was delivered %d times", seed, v, n)
			}
		}
	}
	last := map[string]string{}
	readToEnd(t, ctx, c.servers(), "latest", committed, func(r *kgo.Record) { last[string(r.Key)] = string(r.Value) })
	for k, total := range want {
		var row struct{ Total int64 }
		if err := json.Unmarshal([]byte(last[fmt.Sprintf(`{"k":%d}`, k)]), &row); err != nil || row.Total != total {
			t.Errorf("seed %d: latest has %q for %d, want the total %d", seed, last[fmt.Sprintf(`{"k":%d}`, k)], k, total)
		}
	}
	var changelog int64
	eventually(t, ctx, "the changelogs to be trimmed", func() bool {
		changelog = 0
		own, err := kgo.NewClient(kgo.SeedBrokers(s.kafka))
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		topics := []string{}
		list, err := kadm.NewClient(own).ListTopics(ctx)
		if err != nil {
			return false
		}
		for _, name := range list.Names() {
			if strings.HasSuffix(name, ".changelog") {
				topics = append(topics, name)
			}
		}
		starts, err1 := kadm.NewClient(own).ListStartOffsets(ctx, topics...)
		ends, err2 := kadm.NewClient(own).ListEndOffsets(ctx, topics...)
		if err1 != nil || err2 != nil || len(topics) != 2 {
			return false
		}
		ends.Each(func(o kadm.ListedOffset) {
			start, _ := starts.Lookup(o.Topic, o.Partition)
			changelog += o.Offset - start.Offset
		})
		return changelog == 0
	})
	s.must("DROP SINK copies", "DROP SINK latest")
	eventually(t, ctx, "the groups of dropped sinks to be gone", func() bool {
		groups, err := adm.ListGroups(ctx)
		return err == nil && !strings.Contains(strings.Join(groups.Groups(), " "), "leat.sink.")
	})
	t.Logf("%d kills, %d of them while starting", k.killed, k.during)
}

// feeder writes numbers from 0 on, each once, as transactions, and others in transactions that it aborts.
type feeder struct {
	t    testing.TB
	c    cluster
	rng  *rand.Rand
	next int
}

func (f *feeder) to(ctx context.Context, end int) {
	f.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.c.servers()), kgo.TransactionalID("feeder"), kgo.DefaultProduceTopic("numbers"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		f.t.Fatal(err)
	}
	defer client.Close()
	for f.next < end {
		n := min(1+f.rng.IntN(400), end-f.next)
		abort := f.rng.IntN(4) == 0
		if err := client.BeginTransaction(); err != nil {
			f.t.Fatal(err)
		}
		for i := range n {
			v := f.next + i
			value := fmt.Sprintf(`{"k":%d,"v":%d}`, v%7, v)
			if abort {
				value = `{"k":0,"v":1000000000}`
			}
			client.Produce(ctx, &kgo.Record{Partition: int32(f.rng.IntN(3)), Value: []byte(value)}, func(_ *kgo.Record, err error) {
				if err != nil {
					f.t.Errorf("producing: %v", err)
				}
			})
		}
		if err := client.Flush(ctx); err != nil {
			f.t.Fatal(err)
		}
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(!abort)); err != nil {
			f.t.Fatal(err)
		}
		if !abort {
			f.next += n
		}
	}
}

// readToEnd reads a topic from its start to its end, as of now, at an isolation level.
func readToEnd(t testing.TB, ctx context.Context, servers, topic string, level kgo.Opt, each func(*kgo.Record)) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.ConsumeTopics(topic), level, kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		poll, cancel := context.WithTimeout(ctx, patience)
		got := client.PollFetches(poll)
		cancel()
		if err := got.Err(); err != nil {
			t.Fatalf("reading %s: %v; it lacks %v", topic, err, left)
		}
		got.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				each(r)
			}
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
}
