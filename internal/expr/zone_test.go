package expr

import (
	"testing"
	"time"

	"github.com/leat-io/leat/internal/column"
)

// TestSessionZone evaluates what depends on the session's TimeZone in two of them, with right values.
func TestSessionZone(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ expr, utc, berlin string }{
		{"date_trunc('day', '2024-03-31 12:00+00'::timestamptz) = '2024-03-31 00:00+01'::timestamptz", "f", "t"},
		{"extract(hour from '2024-07-01 12:00+00'::timestamptz)", "12", "14"},
		{"to_char('2024-07-01 12:00+00'::timestamptz, 'HH24:MI TZH')", "12:00 +00", "14:00 +02"},
		{"to_timestamp('2024-07-01', 'YYYY-MM-DD') = '2024-06-30 22:00+00'::timestamptz", "f", "t"},
		{"'2024-03-30 12:00+01'::timestamptz + '1 day'::interval = '2024-03-31 10:00+00'::timestamptz", "f", "t"},
		{"extract(timezone from '2024-01-01 12:00+00'::timestamptz)", "0", "3600"},
	} {
		n, err := bindText(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(Fold(n, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		for zone, want := range map[*time.Location]string{time.UTC: c.utc, berlin: c.berlin} {
			v, err := p.Eval(&Context{Zone: zone}, &column.Batch{Len: 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(formatText(nil, v, 0, nil)); got != want {
				t.Errorf("%s in %s: got %s, want %s", c.expr, zone, got, want)
			}
		}
	}
}
