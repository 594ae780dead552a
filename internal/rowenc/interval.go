package rowenc

import (
	"math"
	"math/bits"

	"github.com/leat-io/leat/internal/column"
)

const (
	microsPerDay = 86_400_000_000
	daysPerMonth = 30
)

// intervalFromSpan makes the interval that a key's span stands for: days and a time of the same sign, and months only when there are
// more days than an interval can hold.
func intervalFromSpan(hi int64, lo uint64) (column.Interval, bool) {
	neg := hi < 0
	if neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		h, _ := bits.Sub64(0, uint64(hi), c)
		hi = int64(h)
	}
	if uint64(hi) >= microsPerDay {
		return column.Interval{}, false
	}
	days, micros := bits.Div64(uint64(hi), lo, microsPerDay)
	if days > math.MaxInt32*(daysPerMonth+2)+200_000_000 {
		return column.Interval{}, false
	}
	iv := column.Interval{Micros: int64(micros)}
	if days <= math.MaxInt32 {
		iv.Days = int32(days)
	} else {
		months := min(days/daysPerMonth, math.MaxInt32)
		iv.Months = int32(months)
		days -= months * daysPerMonth
		if days > math.MaxInt32 {
			iv.Micros += int64(days-math.MaxInt32) * microsPerDay
			days = math.MaxInt32
		}
		iv.Days = int32(days)
	}
	if neg {
		iv.Months, iv.Days, iv.Micros = -iv.Months, -iv.Days, -iv.Micros
	}
	return iv, true
}
