package robustness

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/node"
)

// numbers makes a source, a view and a sink over a topic of the cluster at addr.
func numbers(t *testing.T, n *node.Node, addr string) {
	t.Helper()
	at := "connector = 'kafka', properties.bootstrap.server = '" + addr + "'"
	run(t, n, `CREATE SOURCE numbers (k int) WITH (`+at+`, topic = 'numbers') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, coalesce(sum(k), 0)::bigint AS total FROM numbers`)
	run(t, n, `CREATE SINK copies AS SELECT k FROM numbers WITH (`+at+`, topic = 'copies') FORMAT PLAIN ENCODE JSON`)
}

func counted(t *testing.T, n *node.Node, want string) {
	t.Helper()
	eventually(t, "the view to have "+want, func() bool { return run(t, n, `SELECT n || '|' || total FROM counted`) == want })
}

// delivered waits until the sink has brought all to the cluster.
func delivered(t *testing.T, n *node.Node, c *kgo.Client, want int64) {
	t.Helper()
	eventually(t, "the sink to deliver", func() bool {
		return run(t, n, `SELECT outside_lag::text FROM leat_jobs WHERE name = 'copies'`) == "0"
	})
	ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "copies")
	must(t, err)
	var got int64
	ends.Each(func(o kadm.ListedOffset) { got += o.Offset })
	if got < want {
		t.Fatalf("the target has %d records and markers, want at least %d", got, want)
	}
}

// TestClusterGoesAndComes has a cluster that cannot be reached, is there, grows, goes and comes back: what does not read it goes on, and what does says so and
// catches up.
func TestClusterGoesAndComes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cluster, err := node.Start(t.Context(), config(dir))
	must(t, err)
	addr := cluster.KafkaAddr()
	must(t, cluster.Stop())

	n := start(t, config(t.TempDir()))
	run(t, n, `CREATE TABLE local (id int PRIMARY KEY)`)
	run(t, n, `CREATE MATERIALIZED VIEW locals AS SELECT count(*) AS n FROM local`)
	run(t, n, `CREATE SOURCE early (k int) WITH (connector = 'kafka', topic = 'numbers', properties.bootstrap.server = '`+addr+`') FORMAT PLAIN ENCODE JSON`)
	if code := try(t, n, `CREATE MATERIALIZED VIEW v AS SELECT k FROM early`); code != "08001" {
		t.Fatalf("a view over a cluster that is not there: %q", code)
	}

	c := config(dir)
	c.Kafka = addr
	cluster, err = node.Start(t.Context(), c)
	must(t, err)
	numbers(t, n, addr) // the topics are not there yet
	if code := try(t, n, `SELECT * FROM numbers`); code != "0A000" {
		t.Errorf("an ad hoc query over a cluster: %q", code)
	}
	client := kafka(t, cluster)
	for i := 1; i <= 10; i++ {
		must(t, produce(t, client, "numbers", "", fmt.Sprintf(`{"k":%d}`, i)))
	}
	must(t, produce(t, client, "numbers", "", `no JSON`))
	counted(t, n, "10|55")
	delivered(t, n, client, 10)
	eventually(t, "the dead letter", func() bool {
		return run(t, n, `SELECT records_dead::text FROM leat_jobs WHERE name = 'counted'`) == "1"
	})

	_, err = kadm.NewClient(client).CreatePartitions(t.Context(), 2, "numbers")
	must(t, err)
	eventually(t, "the new partitions to be known", func() bool {
		// Records to both, until the new one has some: the client learns of it in its own time.
		must(t, produce(t, client, "numbers", fmt.Sprint(n), `{"k":0}`))
		to := kafka(t, cluster, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		r := &kgo.Record{Topic: "numbers", Partition: 2, Value: []byte(`{"k":100}`)}
		return to.ProduceSync(t.Context(), r).FirstErr() == nil
	})
	eventually(t, "the new partition to be read", func() bool { return run(t, n, `SELECT total::text FROM counted`) == "155" })

	must(t, cluster.Stop())
	eventually(t, "the source to be shown as away", func() bool {
		return strings.Contains(run(t, n, `SELECT coalesce(outside_problem, '') FROM leat_jobs WHERE name = 'counted'`), "cannot be reached")
	})
	run(t, n, `INSERT INTO local VALUES (1), (2)`)
	if got := run(t, n, `FLUSH; SELECT n FROM locals`); got != "2" {
		t.Errorf("a view beside it has %s", got)
	}
	if got := run(t, n, `FLUSH; SELECT state FROM leat_jobs WHERE name = 'counted'`); got != "running" {
		t.Errorf("what reads the cluster is %q", got)
	}

	cluster = start(t, c)
	client = kafka(t, cluster)
	must(t, produce(t, client, "numbers", "", `{"k":1000}`))
	eventually(t, "the view to catch up", func() bool { return run(t, n, `SELECT total::text FROM counted`) == "1155" })
	eventually(t, "all to be well", func() bool {
		return run(t, n, `SELECT count(outside_problem)::text FROM leat_jobs`) == "0"
	})
	delivered(t, n, client, 12)
	run(t, n, `DROP SINK copies`)
	eventually(t, "the position to be forgotten", func() bool {
		groups, err := kadm.NewClient(client).ListGroups(t.Context())
		return err == nil && len(groups) == 0
	})
}

// TestClusterLosesWhatWasNotRead: the cluster's retention takes records that a job has not read; the cluster forgets how far a sink was. Both stop loudly.
func TestClusterLosesWhatWasNotRead(t *testing.T) {
	t.Parallel()
	cluster := start(t, config(t.TempDir()))
	client := kafka(t, cluster)
	for i := 1; i <= 4; i++ {
		must(t, produce(t, client, "numbers", "", fmt.Sprintf(`{"k":%d}`, i)))
	}
	c := config(t.TempDir())
	n, err := node.Start(t.Context(), c)
	must(t, err)
	numbers(t, n, cluster.KafkaAddr())
	counted(t, n, "4|10")
	delivered(t, n, client, 4)
	must(t, n.Stop())

	for i := 5; i <= 8; i++ {
		must(t, produce(t, client, "numbers", "", fmt.Sprintf(`{"k":%d}`, i)))
	}
	adm := kadm.NewClient(client)
	before := kadm.Offsets{}
	before.AddOffset("numbers", 0, 6, -1)
	_, err = adm.DeleteRecords(t.Context(), before)
	must(t, err)
	n, err = node.Start(t.Context(), c)
	must(t, err)
	eventually(t, "the job to stop", func() bool {
		return strings.Contains(run(t, n, `SELECT state FROM leat_jobs WHERE name = 'counted'`), "retention has deleted records before they were read: the position is 4, the log starts at offset 6, so 2 are missing")
	})

	// The way out, and a position that is gone.
	run(t, n, `DROP SINK copies`)
	run(t, n, `DROP MATERIALIZED VIEW counted`)
	run(t, n, `DROP SOURCE numbers`)
	numbers(t, n, cluster.KafkaAddr())
	counted(t, n, "2|15")
	delivered(t, n, client, 6)
	eventually(t, "the old group to be gone", func() bool {
		groups, err := adm.ListGroups(t.Context())
		return err == nil && len(groups) == 1
	})
	must(t, n.Stop())
	groups, err := adm.ListGroups(t.Context())
	must(t, err)
	_, err = adm.DeleteGroups(t.Context(), groups.Groups()...)
	must(t, err)
	n = start(t, c)
	must(t, produce(t, client, "numbers", "", `{"k":9}`))
	counted(t, n, "3|24")
	state := func() string { return run(t, n, `SELECT state FROM leat_jobs WHERE name = 'copies'`) }
	eventually(t, "the delivery to stop or go on", func() bool {
		lag := run(t, n, `SELECT outside_lag::text FROM leat_jobs WHERE name = 'copies'`)
		return lag == "0" || strings.Contains(state(), "delivery stopped: the target has forgotten the position")
	})
	got := map[string]int{}
	reader := kafka(t, cluster, kgo.ConsumeTopics("copies"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for n := 0; n < 6; {
		reader.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			got[string(r.Value)]++
			n++
		})
	}
	want := map[string]int{`{"k":1}`: 1, `{"k":2}`: 1, `{"k":3}`: 1, `{"k":4}`: 1, `{"k":7}`: 1, `{"k":8}`: 1}
	delete(got, `{"k":9}`)    // if it was sure that nothing was on its way
	if len(got) < len(want) { // the last poll ended with that one
		reader.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) { got[string(r.Value)]++ })
	}
	for v, n := range got {
		if n != want[v] {
			t.Errorf("the target has %s %d times, want %d", v, n, want[v])
		}
	}
}

// TestClusterThatIsNone: something else answers at the address.
func TestClusterThatIsNone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	n := start(t, config(t.TempDir()))
	run(t, n, `CREATE TABLE t (id int PRIMARY KEY)`)
	run(t, n, `CREATE SOURCE s (k int) WITH (connector = 'kafka', topic = 's', properties.bootstrap.server = '`+l.Addr().String()+`') FORMAT PLAIN ENCODE JSON`)
	if code := try(t, n, `CREATE MATERIALIZED VIEW v AS SELECT k FROM s`); code != "08001" {
		t.Errorf("a view over it: %q", code)
	}
	run(t, n, `CREATE SINK copies FROM t WITH (connector = 'kafka', topic = 'copies', properties.bootstrap.server = '`+l.Addr().String()+`') FORMAT UPSERT ENCODE JSON`)
	run(t, n, `INSERT INTO t VALUES (1)`)
	eventually(t, "the sink to say what is wrong", func() bool {
		return run(t, n, `SELECT (outside_problem IS NOT NULL AND outside_lag = 1)::text FROM leat_jobs WHERE name = 'copies'`) == "true"
	})
	run(t, n, `DROP SINK copies`)
}
