package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/node"
)

// consume reads n records of a topic from its start.
func consume(t *testing.T, n *node.Node, topic string, count int) []*kgo.Record {
	t.Helper()
	c := kafka(t, n, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(64<<20), kgo.BrokerMaxReadBytes(128<<20), kgo.FetchMaxBytes(64<<20))
	var out []*kgo.Record
	eventually(t, fmt.Sprintf("%d records of %s", count, topic), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out = append(out, c.PollFetches(ctx).Records()...)
		return len(out) >= count
	})
	return out
}

// TestHostileRecords has a producer write what no decoder likes, between good neighbours: each is a dead letter with its reason, place and bytes, and is counted; the
// neighbours are all there; and the topic is read again the same way by a second view and after a restart.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	deep := func(n int, inner string) string { return strings.Repeat("[", n) + inner + strings.Repeat("]", n) }
	huge := strings.Repeat("é", 8<<20) // 16 MB
	const most = 20 << 20
	records := []struct{ name, value, reason, row string }{
		{"good", `{"k":1,"n":1.5,"b":true,"t":"x","j":{"a":[1]},"at":"2024-01-01T00:00:00Z"}`, "", `1|1.5|true|x|{"a": [1]}`},
		{"missing fields", `{"k":2}`, "", `2||||`},
		{"nulls", `{"k":3,"n":null,"b":null,"t":null,"j":null,"at":null}`, "", `3||||`},
		{"extra fields", `{"k":4,"zzz":{"deep":[[1]]},"":0," k":5,"K":6}`, "", `4||||`},
		{"a field twice", `{"k":0,"t":"first","k":5,"t":"second"}`, "", `5|||second|`},
		{"a mistyped field that a cast takes", `{"k":"6","t":12.50,"n":"1e3","b":"yes"}`, "", `6|1000|true|12.50|`},
		{"a mistyped number", `{"k":"six"}`, `field "k": invalid input syntax for type integer: "six"`, ""},
		{"a mistyped boolean", `{"k":7,"b":"perhaps"}`, `field "b": invalid input syntax for type boolean: "perhaps"`, ""},
		{"an object for a number", `{"k":{"x":1}}`, `field "k"`, ""},
		{"a fraction for an integer", `{"k":1.5}`, `field "k"`, ""},
		{"a number beyond its type", `{"k":2147483648}`, `value "2147483648" is out of range for type integer`, ""},
		{"a number beyond all types", `{"k":` + strings.Repeat("9", 5000) + `}`, `field "k": value "999`, ""},
		{"a numeric of many digits", `{"k":8,"n":` + strings.Repeat("9", 1000) + `}`, "", `8|` + strings.Repeat("9", 1000) + `|||`},
		{"a numeric beyond its type", `{"k":8,"n":1e999999999}`, `field "n"`, ""},
		{"a date that is none", `{"k":9,"at":"2024-02-30T00:00:00Z"}`, `field "at"`, ""},
		{"no JSON", `hello`, `'h' where an object is expected`, ""},
		{"an array", `[1]`, `where an object is expected`, ""},
		{"a string", `"k"`, `where an object is expected`, ""},
		{"null", `null`, `where an object is expected`, ""},
		{"two objects", `{"k":1}{"k":2}`, `where the end of the record is expected`, ""},
		{"cut short", `{"k":1,"t":"ab`, `the text ends`, ""},
		{"a trailing comma", `{"k":1,}`, `'}' where`, ""},
		{"a comment", `{"k":1 /* one */}`, `'/' where`, ""},
		{"single quotes", `{'k':1}`, `'\'' where`, ""},
		{"NaN", `{"k":NaN}`, `'N' where`, ""},
		{"a byte order mark", "\ufeff" + `{"k":1}`, `where an object is expected`, ""},
		{"empty", ``, `the text ends where an object is expected`, ""},
		{"a byte of 0", "\x00", `where an object is expected`, ""},
		{"a control character in a string", "{\"t\":\"a\x01b\"}", "control character", ""},
		{"NUL in a text, escaped", `{"k":1,"t":"a\u0000b"}`, `\u0000 cannot be in a text`, ""},
		{"NUL in a jsonb, escaped", `{"k":1,"j":{"a":"\u0000"}}`, `field "j"`, ""},
		{"NUL in the name of a field", `{"k":10,"a\u0000b":1}`, "", `10||||`},
		{"half a surrogate pair", `{"k":1,"t":"\ud800"}`, `field "t"`, ""},
		{"invalid UTF-8 in a value", "{\"k\":1,\"t\":\"\xff\xfe\"}", "not valid UTF-8", ""},
		{"invalid UTF-8 in a name", "{\"k\":1,\"\xc3\x28\":1}", "not valid UTF-8", ""},
		{"an overlong encoding", "{\"k\":1,\"t\":\"\xc0\xaf\"}", "not valid UTF-8", ""},
		{"nested 10,000 levels in a field", `{"k":1,"j":` + deep(10_000, "1") + `}`, "nested deeper than", ""},
		{"nested 10,000 levels in a field that nobody reads", `{"k":1,"x":` + deep(10_000, "1") + `}`, "nested deeper than", ""},
		{"10,000 levels that never close", strings.Repeat(`{"a":`, 10_000), "nested deeper than", ""},
		{"nested 50 levels", `{"k":11,"j":` + deep(50, "1") + `}`, "", `11||||` + deep(50, "1")},
		{"a string of 16 MB", `{"k":12,"t":"` + huge + `"}`, "", `12|||` + huge + `|`},
		{"a string of 16 MB that nobody reads", `{"k":13,"x":"` + huge + `"}`, "", `13||||`},
		{"a bad record of 16 MB", `{"k":"` + huge + `"}`, `field "k": invalid input syntax for type integer: "é`, ""},
		{"a million members", `{"k":14,` + strings.Repeat(`"x":1,`, 1_000_000) + `"t":"end"}`, "", `14|||end|`},
		{"a record of max.message.bytes", sized(`{"k":15,"x":"`, `"}`, most-200), "", `15||||`},
		{"good again", `{"k":99,"t":"end"}`, "", `99|||end|`},
	}
	c := config(t.TempDir())
	n, err := node.Start(t.Context(), c)
	must(t, err)
	client := kafka(t, n, kgo.ProducerBatchMaxBytes(most+1024), kgo.ProduceRequestTimeout(patience), kgo.ProducerBatchCompression(kgo.NoCompression()))
	create(t, client, "in", map[string]string{"max.message.bytes": strconv.Itoa(most)})
	run(t, n, `CREATE SOURCE s (k int, n numeric, b boolean, t text, j jsonb, at timestamptz) INCLUDE key AS key WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON`)
	const shape = `count(*) AS n, sum(k) AS total, sum(length(t)) AS text, count(j) AS j`
	run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT `+shape+` FROM s`)
	run(t, n, `CREATE MATERIALIZED VIEW rows AS SELECT k, coalesce(n::text, '') || '|' || coalesce(b::text, '') || '|' || coalesce(t, '') || '|' || coalesce(j::text, '') AS row FROM s`)
	headers := []kgo.RecordHeader{{Key: "trace", Value: []byte("a\x00b")}, {Key: "none"}, {Key: "leat.error.cause", Value: []byte("its own")}}
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	dead := map[int64]int{} // by offset
	good := 0
	rows := map[string]string{}
	for i, r := range records {
		if err := send(t, client, &kgo.Record{Topic: "in", Key: []byte("k\x00\xff"), Value: []byte(r.value), Headers: headers, Timestamp: at}).FirstErr(); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if r.reason != "" {
			dead[int64(i)] = i
			continue
		}
		good++
		k, rest, _ := strings.Cut(r.row, "|")
		rows[k] = rest
	}
	// A record without a value, and one that is larger than the topic takes: the one is dead, the other never enters.
	must(t, send(t, client, &kgo.Record{Topic: "in", Key: []byte("tombstone")}).FirstErr())
	if err := send(t, client, &kgo.Record{Topic: "in", Value: bytes.Repeat([]byte("x"), most+1)}).FirstErr(); err == nil {
		t.Error("a record above max.message.bytes was taken")
	}

	check := func(n *node.Node, view string) {
		t.Helper()
		if got := run(t, n, `FLUSH; SELECT n FROM `+view); got != strconv.Itoa(good) {
			t.Errorf("%s has %s rows, want %d", view, got, good)
		}
		if got, want := gauge(t, n, "leat_records_dead_total", "s"), float64(len(dead)+1); got != want {
			t.Errorf("leat_records_dead_total: %v, want %v", got, want)
		}
	}
	check(n, "v")
	for k, want := range rows {
		if got := run(t, n, `SELECT row FROM rows WHERE k = `+k); got != want {
			t.Errorf("k = %s: got %s, want %s", k, abbreviated(got), abbreviated(want))
		}
	}
	letters := consume(t, n, "s.errors", int(gauge(t, n, "leat_records_dead_total", "s")))
	for _, l := range letters {
		h := map[string]string{}
		for _, x := range l.Headers {
			h[x.Key] = string(x.Value)
		}
		offset, err := strconv.ParseInt(h["leat.error.offset"], 10, 64)
		if err != nil || h["leat.error.partition"] != "0" || h["leat.error.source"] != "s" {
			t.Errorf("a dead letter's headers: %q", h)
			continue
		}
		if offset == int64(len(records)) {
			if h["leat.error.reason"] != "the record has no value" {
				t.Errorf("the tombstone's reason: %s", h["leat.error.reason"])
			}
			continue
		}
		i, ok := dead[offset]
		if !ok {
			t.Errorf("%s is a dead letter: %s", records[offset].name, h["leat.error.reason"])
			continue
		}
		delete(dead, offset)
		if r := records[i]; !strings.Contains(h["leat.error.reason"], r.reason) || len(h["leat.error.reason"]) > 1100 {
			t.Errorf("%s: the reason is %q, want %q", r.name, abbreviated(h["leat.error.reason"]), r.reason)
		} else if string(l.Key) != "k\x00\xff" || !l.Timestamp.Equal(at) || len(l.Headers) != len(headers)+4 || !reflect.DeepEqual(l.Headers[:len(headers)], headers) {
			t.Errorf("%s: the letter has key %q, time %v and headers %q", r.name, l.Key, l.Timestamp, l.Headers)
		} else if string(l.Value) != r.value {
			t.Errorf("%s: the letter has %d bytes %s, want %d", r.name, len(l.Value), abbreviated(string(l.Value)), len(r.value))
		}
	}
	for _, i := range slices.Sorted(maps.Values(dead)) {
		t.Errorf("%s: no dead letter", records[i].name)
	}
	dead = map[int64]int{}
	for i, r := range records {
		if r.reason != "" {
			dead[int64(i)] = i
		}
	}
	// Another reader counts no record twice.
	run(t, n, `CREATE MATERIALIZED VIEW second AS SELECT `+shape+` FROM s`)
	check(n, "second")
	must(t, n.Stop())
	n = start(t, c)
	check(n, "v")
	check(n, "second")
}

// sized is a text of n bytes.
func sized(before, after string, n int) string {
	return before + strings.Repeat("x", n-len(before)-len(after)) + after
}

func abbreviated(s string) string {
	if len(s) > 200 {
		return s[:200] + fmt.Sprintf("... (%d bytes)", len(s))
	}
	return s
}

// TestTimesBeyondBounds gives a stream event times that no clock has shown: infinite ones, the end of the calendar, what overflows in microseconds, the far future and the far
// past. None of them moves the watermark further than it may, all are counted, and windows of the present go on.
func TestTimesBeyondBounds(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	client := kafka(t, n)
	create(t, client, "in", nil)
	create(t, client, "strict", nil)
	create(t, client, "unix", nil)
	run(t, n, `CREATE SOURCE s (k int, at timestamptz, WATERMARK FOR at AS at - INTERVAL '1 minute') WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE SOURCE strict (k int, at timestamptz, WATERMARK FOR at AS at) WITH (connector='kafka', topic='strict', watermark.max.ahead='1 minute') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE SOURCE u (ms bigint, at timestamptz AS (to_timestamp(ms / 1000.0)), WATERMARK FOR at AS at) WITH (connector='kafka', topic='unix') FORMAT PLAIN ENCODE JSON`)
	for _, s := range []string{"s", "strict", "u"} {
		run(t, n, `CREATE MATERIALIZED VIEW w_`+s+` AS SELECT window_start, count(*) AS n FROM TUMBLE(`+s+`, at, INTERVAL '1 second') GROUP BY window_start, window_end`)
	}
	now := time.Now().UTC().Truncate(time.Second)
	in := func(topic, value string) { t.Helper(); must(t, produce(t, client, topic, "", value)) }
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	bad := []string{"9999-12-31T23:59:59.999999Z", "294276-12-31T23:59:59Z", "infinity", at(25 * time.Hour), "294277-01-01T00:00:00Z", "1e400"}
	for _, text := range bad {
		in("in", fmt.Sprintf(`{"k":1,"at":%q}`, text))
	}
	good := []string{at(-2 * time.Second), at(-time.Second), at(23 * time.Hour), at(-2 * time.Second)} // the last is late then
	in("in", fmt.Sprintf(`{"k":1,"at":%q}`, good[0]))
	in("in", fmt.Sprintf(`{"k":1,"at":%q}`, good[1]))
	in("in", `{"k":1,"at":"-infinity"}`)
	in("in", `{"k":1,"at":"4713-01-01T00:00:00Z BC"}`)
	if got := run(t, n, `FLUSH; SELECT sum(n) FROM w_s`); got != "2" {
		t.Errorf("windows have %s rows, want the 2 of the present", got)
	}
	if got := run(t, n, fmt.Sprintf(`SELECT watermark < '%s' FROM leat_jobs WHERE name = 'w_s'`, at(time.Hour))); got != "t" {
		t.Errorf("the watermark was moved to %s", run(t, n, `SELECT watermark FROM leat_jobs WHERE name = 'w_s'`))
	}
	// The far past is late, not bad.
	if got := gauge(t, n, "leat_rows_late_total", "w_s"); got < 1 {
		t.Errorf("%v rows are late", got)
	}
	if got := gauge(t, n, "leat_records_dead_total", "s"); got < float64(len(bad)) {
		t.Errorf("%v dead letters, want %d or more", got, len(bad))
	}
	// Up to a day ahead is taken unless the source says otherwise.
	in("in", fmt.Sprintf(`{"k":1,"at":%q}`, good[2]))
	if got := run(t, n, `FLUSH; SELECT sum(n) FROM w_s`); got != "3" {
		t.Errorf("%s rows, want 3", got)
	}
	in("strict", fmt.Sprintf(`{"k":1,"at":%q}`, at(time.Hour)))
	in("strict", fmt.Sprintf(`{"k":1,"at":%q}`, at(0)))
	if got := run(t, n, `FLUSH; SELECT sum(n) FROM w_strict`); got != "1" {
		t.Errorf("%s rows, want the one within a minute", got)
	}
	letter := consume(t, n, "strict.errors", 1)[0]
	if reason := string(letter.Headers[0].Value); !strings.Contains(reason, "too far ahead") {
		t.Errorf("reason %q", reason)
	}
	// Seconds, milliseconds and microseconds mixed up, and more than a bigint of microseconds holds.
	for _, ms := range []string{strconv.FormatInt(now.UnixMicro(), 10), strconv.FormatInt(now.UnixNano(), 10), "9223372036854775807", "-9223372036854775808", "9224318016000000", strconv.FormatInt(now.UnixMilli(), 10)} {
		in("unix", `{"ms":`+ms+`}`)
	}
	if got := run(t, n, `FLUSH; SELECT sum(n) FROM w_u`); got != "1" {
		t.Errorf("%s rows, want the one in milliseconds", got)
	}
	if got := gauge(t, n, "leat_records_dead_total", "u"); got < 4 {
		t.Errorf("%v dead letters of mixed-up units", got)
	}
	// INCLUDE timestamp is the record's own time, which the broker bounds; a client with a clock decades off is refused.
	err := send(t, client, &kgo.Record{Topic: "in", Value: []byte(`{}`), Timestamp: now.AddDate(30, 0, 0)}).FirstErr()
	if err == nil {
		t.Error("a record of the far future was taken")
	}
	var states []string
	must(t, json.Unmarshal([]byte(run(t, n, `SELECT '["' || min(state) || '","' || max(state) || '"]' FROM leat_jobs`)), &states))
	if states[0] != "running" || states[1] != "running" {
		t.Errorf("jobs: %q", states)
	}
}

// create makes a topic of one partition.
func create(t *testing.T, c *kgo.Client, topic string, configs map[string]string) {
	t.Helper()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = kadm.StringPtr(v)
	}
	r, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, values, topic)
	must(t, errors.Join(err, r.Err))
}

// send produces a record within patience.
func send(t *testing.T, c *kgo.Client, r *kgo.Record) kgo.ProduceResults {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.ProduceSync(ctx, r)
}

// TestRecordsWithoutATimestamp: a record may have no timestamp (-1). That is a missing event time where the source takes the timestamp as such, and null
// elsewhere: an event time of the record's own counts, and is bounded by now.
func TestRecordsWithoutATimestamp(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	client := kafka(t, n)
	create(t, client, "in", nil)
	run(t, n, `CREATE SOURCE own (at timestamptz, WATERMARK FOR at AS at) INCLUDE timestamp AS written WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE SOURCE theirs (at timestamptz, WATERMARK FOR written AS written) INCLUDE timestamp AS written WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON`)
	for _, s := range []string{"own", "theirs"} {
		run(t, n, `CREATE MATERIALIZED VIEW w_`+s+` AS SELECT at, written FROM `+s)
	}
	now := time.Now().UTC().Truncate(time.Second)
	put := func(at, written time.Time) {
		must(t, send(t, client, &kgo.Record{Topic: "in", Value: []byte(fmt.Sprintf(`{"at":%q}`, at.Format(time.RFC3339))), Timestamp: written}).FirstErr())
	}
	none := time.UnixMilli(-1)
	put(now, none)
	put(now.Add(-time.Hour), now)
	put(now.AddDate(30, 0, 0), none)
	if got := run(t, n, `FLUSH; SELECT count(*) || '|' || count(written) FROM w_own`); got != "2|1" {
		t.Errorf("with an event time of their own: %s records and timestamps, want 2|1", got)
	}
	if got := run(t, n, `SELECT count(*) || '|' || count(written) FROM w_theirs`); got != "1|1" {
		t.Errorf("with the timestamp as event time: %s records and timestamps, want 1|1", got)
	}
	for source, want := range map[string][]string{
		"own":    {"event time is too far ahead of now, and the record has no timestamp"},
		"theirs": {"no event time: column written is null", "no event time: column written is null"},
	} {
		for i, letter := range consume(t, n, source+".errors", len(want)) {
			if got := string(letter.Headers[0].Value); got != want[i] {
				t.Errorf("%s: letter %d has the reason %q, want %q", source, i, got, want[i])
			}
		}
	}
}
