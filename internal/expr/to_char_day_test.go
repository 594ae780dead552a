package expr

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/column"
)

// TestToCharDayByDay: the text of a day is used again for the rows that follow, and not for those of another day.
func TestToCharDayByDay(t *testing.T) {
	t.Parallel()
	for format, layout := range map[string]string{"YYYY-MM-DD": "2006-01-02", "YYYY-MM-DD HH24": "2006-01-02 15", "DD.MM.YY": "02.01.06"} {
		n, err := Resolve("to_char", []*Node{{Op: OpColumn, Type: column.TTimestamp, Index: 0}, textConst(format)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(n, []column.Type{column.TTimestamp})
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(9, 0))
		for range 20 {
			in := column.NewBatch([]column.Type{column.TTimestamp}, 100)
			var want []string
			for range 100 {
				at := time.Date(1969, 12, 30+rnd.IntN(4), rnd.IntN(24), 0, 0, 0, time.UTC)
				if rnd.IntN(10) == 0 {
					in.Cols[0].AppendNull()
					want = append(want, "")
				} else {
					in.Cols[0].AppendInt64(at.UnixMicro())
					want = append(want, at.Format(layout))
				}
				in.EndRow(1)
			}
			v, err := p.Eval(nil, in)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				if got := string(v.Bytes(i)); got != w && !(w == "" && v.IsNull(i)) {
					t.Fatalf("%s: row %d is %q, want %q", format, i, got, w)
				}
			}
		}
	}
}
