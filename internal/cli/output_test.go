package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type sample struct {
	Name  string    `json:"name"`
	Count int64     `json:"how_many"`
	Size  byteCount `json:"bytes" col:"SIZE"`
	Lag   *seconds  `json:"lag_seconds" col:"BEHIND"`
	Note  string    `json:"note,omitempty" empty:"hide"`
	Inner []inner   `json:"inner"`
}

type inner struct {
	List []string `json:"list"`
}

func TestTheSameForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	lag := seconds(3*3600 + 61)
	rows := []sample{{Name: "ä\x1b[31m", Count: 5, Size: 1536}, {Name: "", Count: 12345, Lag: &lag, Inner: []inner{{[]string{"a", "b"}}, {}}}}
	for _, c := range []struct {
		name, format, want string
		show               func(*output, *strings.Builder) error
	}{
		{
			"list", "table", "NAME       HOW-MANY    SIZE  BEHIND\nä\\x1b[31m         5  1.5 KB       -\n-             12345     0 B    3h1m\n",
			func(o *output, b *strings.Builder) error { return o.list(b, rows) },
		},
		{
			"list", "json", `[{"name":"ä\u001b[31m","how_many":5,"bytes":1536,"lag_seconds":null,"inner":null},{"name":"","how_many":12345,"bytes":0,"lag_seconds":10861,"inner":[{"list":["a","b"]},{"list":null}]}]` + "\n",
			func(o *output, b *strings.Builder) error { return o.list(b, rows) },
		},
		{"empty", "json", "[]\n", func(o *output, b *strings.Builder) error { return o.list(b, []sample(nil)) }},
		{
			"one", "table", "NAME      -\nHOW-MANY  12345\nSIZE      0 B\nBEHIND    3h1m\nNOTE      -\n\nLIST\na,b\n-\n",
			func(o *output, b *strings.Builder) error { return o.describe(b, rows[1]) },
		},
	} {
		o := &output{}
		if err := o.Set(c.format); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := c.show(o, &b); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%s as %s:\n%s\nwant:\n%s", c.name, c.format, b.String(), c.want)
		}
	}
	if (&output{}).Set("yaml") == nil {
		t.Error("yaml is taken")
	}
}

func TestRecordFormats(t *testing.T) {
	t.Parallel()
	r := &kgo.Record{
		Topic: "orders", Partition: 3, Offset: 42, LeaderEpoch: 7, Key: []byte("k"), Value: []byte("väl"), Timestamp: time.UnixMilli(1769850000123),
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}},
	}
	for format, want := range map[string]string{
		`%t %p %o %k %s %T\n`: "orders 3 42 k väl 1769850000123\n",
		`%v|%d|%e|%h`:         "väl|2026-01-31T09:00:00.123Z|7|a=1,b=",
		`%K %S %V 100%%`:      "1 4 4 100%",
		`a\tb\\\x41\r\0`:      "a\tb\\A\r\x00",
	} {
		f, err := parseRecordFormat(format)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		var got []byte
		for _, piece := range f {
			got = piece(got, r)
		}
		if string(got) != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
	for _, format := range []string{`%`, `\`, `%y`, `\q`, `\x4`, `\xzz`} {
		if _, err := parseRecordFormat(format); err == nil {
			t.Errorf("%s is taken", format)
		}
	}
	line := string(recordAsJSON[0](nil, &kgo.Record{Topic: "t", Value: []byte{0xff}, Timestamp: time.UnixMilli(0)}))
	if want := `{"topic":"t","partition":0,"offset":0,"timestamp":"1970-01-01T00:00:00.000Z","key":null,"value":null,"value_base64":"/w=="}` + "\n"; line != want {
		t.Errorf("got %s, want %s", line, want)
	}
	none := &kgo.Record{Topic: "t", Value: []byte("x"), Timestamp: time.UnixMilli(-1)}
	if got, want := string(recordAsJSON[0](nil, none)), `{"topic":"t","partition":0,"offset":0,"timestamp":null,"key":null,"value":"x"}`+"\n"; got != want {
		t.Errorf("without a timestamp: got %s, want %s", got, want)
	}
	if f, err := parseRecordFormat("%d"); err != nil || string(f[0](nil, none)) != "-" {
		t.Errorf("without a timestamp: got %q (%v)", f[0](nil, none), err)
	}
}

func TestTimesOfTheProtocol(t *testing.T) {
	t.Parallel()
	if at := timeOf(-1); at != nil {
		t.Errorf("-1 is %v", at)
	}
	for ms, want := range map[int64]string{0: "1970-01-01T00:00:00Z", 1_700_000_000_001: "2023-11-14T22:13:20.001Z"} {
		if at := timeOf(ms); at == nil || at.Format(time.RFC3339Nano) != want {
			t.Errorf("%d is %v, want %s", ms, at, want)
		}
	}
	row, err := json.Marshal(producerRow{Topic: "t", Last: timeOf(-1)})
	if err != nil || !strings.Contains(string(row), `"last_timestamp":null`) {
		t.Errorf("%s, %v", row, err)
	}
}

func TestKeysThatMove(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]int{{4, 6}, {4, 8}, {1, 2}, {3, 4}, {6, 4}, {5, 7}} {
		before, after := c[0], c[1]
		stay := 0
		const keys = 840_000 // a multiple of all of their common multiples
		for h := range keys {
			if h%before == h%after {
				stay++
			}
		}
		if got, want := moved(before, after), fmt.Sprintf("about %d %% of the keys do", 100-100*stay/keys); got != want {
			t.Errorf("%d to %d: %s, want %s", before, after, got, want)
		}
	}
}

func TestOffsetsInAFile(t *testing.T) {
	t.Parallel()
	got, err := readOffsets(strings.NewReader("# a comment\norders 0 42\norders\t1\t7\n\n\"pay\",0,9\r\n"))
	if err != nil || !maps.Equal(got["orders"], map[int32]int64{0: 42, 1: 7}) || !maps.Equal(got["pay"], map[int32]int64{0: 9}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "orders 0", "orders x 1", "orders 0 -1", "orders -1 0"} {
		if _, err := readOffsets(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
