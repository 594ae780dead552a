package expr

import (
	"math"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

var (
	errDateRange     = pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range")
	errIntervalRange = pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
	errInfiniteDates = pgerr.New(pgerr.DatetimeFieldOverflow, "cannot subtract infinite dates")
	errInfiniteTimes = pgerr.New(pgerr.DatetimeFieldOverflow, "cannot subtract infinite timestamps")
)

// timeArithmetic are the operators of dates, times and intervals.
var timeArithmetic = []Overload{
	{Name: "+", Args: []column.Type{tDate, tInt4}, Result: tDate, Make: kernel(func(c *Call) { addDays(c, 0, 1, 1) })},
	{Name: "+", Args: []column.Type{tInt4, tDate}, Result: tDate, Make: kernel(func(c *Call) { addDays(c, 1, 0, 1) })},
	{Name: "-", Args: []column.Type{tDate, tInt4}, Result: tDate, Make: kernel(func(c *Call) { addDays(c, 0, 1, -1) })},
	{Name: "-", Args: []column.Type{tDate, tDate}, Result: tInt4, Make: kernel(subDates)},
	{Name: "+", Args: []column.Type{tDate, tTime}, Result: tTimestamp, Make: kernel(func(c *Call) { addDateTime(c, 0, 1) })},
	{Name: "+", Args: []column.Type{tTime, tDate}, Result: tTimestamp, Make: kernel(func(c *Call) { addDateTime(c, 1, 0) })},
	{Name: "+", Args: []column.Type{tDate, tInterval}, Result: tTimestamp, Make: kernel(func(c *Call) { addDateInterval(c, 0, 1, 1) })},
	{Name: "+", Args: []column.Type{tInterval, tDate}, Result: tTimestamp, Make: kernel(func(c *Call) { addDateInterval(c, 1, 0, 1) })},
	{Name: "-", Args: []column.Type{tDate, tInterval}, Result: tTimestamp, Make: kernel(func(c *Call) { addDateInterval(c, 0, 1, -1) })},
	{Name: "+", Args: []column.Type{tTimestamp, tInterval}, Result: tTimestamp, Make: kernel(func(c *Call) { addInterval(c, 0, 1, 1) })},
	{Name: "+", Args: []column.Type{tInterval, tTimestamp}, Result: tTimestamp, Make: kernel(func(c *Call) { addInterval(c, 1, 0, 1) })},
	{Name: "-", Args: []column.Type{tTimestamp, tInterval}, Result: tTimestamp, Make: kernel(func(c *Call) { addInterval(c, 0, 1, -1) })},
	{Name: "+", Args: []column.Type{tTimestamptz, tInterval}, Result: tTimestamptz, Volatility: Zoned, Make: kernel(func(c *Call) { addInterval(c, 0, 1, 1) })},
	{Name: "+", Args: []column.Type{tInterval, tTimestamptz}, Result: tTimestamptz, Volatility: Zoned, Make: kernel(func(c *Call) { addInterval(c, 1, 0, 1) })},
	{Name: "-", Args: []column.Type{tTimestamptz, tInterval}, Result: tTimestamptz, Volatility: Zoned, Make: kernel(func(c *Call) { addInterval(c, 0, 1, -1) })},
	{Name: "-", Args: []column.Type{tTimestamp, tTimestamp}, Result: tInterval, Make: kernel(subTimestamps)},
	{Name: "-", Args: []column.Type{tTimestamptz, tTimestamptz}, Result: tInterval, Make: kernel(subTimestamps)},
	{Name: "+", Args: []column.Type{tTime, tInterval}, Result: tTime, Make: kernel(func(c *Call) { addToTime(c, 0, 1, 1) })},
	{Name: "+", Args: []column.Type{tInterval, tTime}, Result: tTime, Make: kernel(func(c *Call) { addToTime(c, 1, 0, 1) })},
	{Name: "-", Args: []column.Type{tTime, tInterval}, Result: tTime, Make: kernel(func(c *Call) { addToTime(c, 0, 1, -1) })},
	{Name: "-", Args: []column.Type{tTime, tTime}, Result: tInterval, Make: kernel(func(c *Call) {
		out, a, b := c.Out.Iv, c.Int64s(0), c.Int64s(1)
		for _, row := range c.Rows() {
			out[row] = column.Interval{Micros: a.At(row) - b.At(row)}
		}
	})},
	intervals2("+", sumIntervals),
	intervals2("-", func(a, b column.Interval) (column.Interval, bool) {
		months, ok1 := toInt32(int64(a.Months) - int64(b.Months))
		days, ok2 := toInt32(int64(a.Days) - int64(b.Days))
		us := a.Micros - b.Micros
		return column.Interval{Months: months, Days: days, Micros: us}, ok1 && ok2 && (us < a.Micros) == (b.Micros > 0)
	}),
	{Name: "-", Args: []column.Type{tInterval}, Result: tInterval, Make: kernel(func(c *Call) {
		out, a := c.Out.Iv, c.Intervals(0)
		for _, row := range c.Rows() {
			iv, ok := negateInterval(a.At(row))
			if !ok {
				c.Fail(row, errIntervalRange)
				continue
			}
			out[row] = iv
		}
	})},
	{Name: "*", Args: []column.Type{tInterval, tFloat8}, Result: tInterval, Make: kernel(func(c *Call) { scaleInterval(c, 0, 1, false) })},
	{Name: "*", Args: []column.Type{tFloat8, tInterval}, Result: tInterval, Make: kernel(func(c *Call) { scaleInterval(c, 1, 0, false) })},
	{Name: "/", Args: []column.Type{tInterval, tFloat8}, Result: tInterval, Make: kernel(func(c *Call) { scaleInterval(c, 0, 1, true) })},
}

func toInt32(x int64) (int32, bool) { return int32(x), x == int64(int32(x)) }

func addDays(c *Call, date, n int, sign int64) {
	out, a, b := c.Out.I32, c.Int32s(date), c.Int32s(n)
	for _, row := range c.Rows() {
		d := a.At(row)
		if d != column.DateInfinity && d != column.DateNegInfinity {
			x := int64(d) + sign*int64(b.At(row))
			if !pgtype.DateInRange(x) {
				c.Fail(row, errDateRange)
				continue
			}
			d = int32(x)
		}
		out[row] = d
	}
}

func subDates(c *Call) {
	out, a, b := c.Out.I32, c.Int32s(0), c.Int32s(1)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		if x == column.DateInfinity || x == column.DateNegInfinity || y == column.DateInfinity || y == column.DateNegInfinity {
			c.Fail(row, errInfiniteDates)
			continue
		}
		out[row] = x - y
	}
}

func addDateTime(c *Call, date, tm int) {
	out, a, b := c.Out.I64, c.Int32s(date), c.Int64s(tm)
	for _, row := range c.Rows() {
		us, err := dateToTimestamp(a.At(row))
		if err == nil && !infinite(us) {
			if us += b.At(row); !pgtype.TimestampInRange(us) {
				err = errTimestampRange
			}
		}
		if err != nil {
			c.Fail(row, err)
			continue
		}
		out[row] = us
	}
}

func negateInterval(iv column.Interval) (column.Interval, bool) {
	ok := iv.Months != math.MinInt32 && iv.Days != math.MinInt32 && iv.Micros != math.MinInt64
	return column.Interval{Months: -iv.Months, Days: -iv.Days, Micros: -iv.Micros}, ok
}

func addDateInterval(c *Call, date, span, sign int) {
	out, a, b := c.Out.I64, c.Int32s(date), c.Intervals(span)
	for _, row := range c.Rows() {
		us, err := dateToTimestamp(a.At(row))
		if err == nil {
			us, err = shift(us, b.At(row), sign, time.UTC)
		}
		if err != nil {
			c.Fail(row, err)
			continue
		}
		out[row] = us
	}
}

func addInterval(c *Call, ts, span, sign int) {
	out, a, b, zone := c.Out.I64, c.Int64s(ts), c.Intervals(span), c.zoneOf(c.Args[ts].Type.Kind)
	for _, row := range c.Rows() {
		us, err := shift(a.At(row), b.At(row), sign, zone)
		if err != nil {
			c.Fail(row, err)
			continue
		}
		out[row] = us
	}
}

// shift adds an interval: months and days to what clocks in the zone show, then the time.
func shift(us int64, iv column.Interval, sign int, zone *time.Location) (int64, *pgerr.Error) {
	if infinite(us) {
		return us, nil
	}
	if iv.Months != 0 || iv.Days != 0 {
		local := pgtype.ToLocal(us, zone)
		days, tod := pgtype.SplitMicros(local)
		if iv.Months != 0 {
			y, m, d := pgtype.Civil(days)
			total := int64(y)*12 + int64(m-1) + int64(sign)*int64(iv.Months)
			year, month := floorDiv(total, 12)
			if year > 300_000 || year < -5000 {
				return 0, errTimestampRange
			}
			d = min(d, pgtype.MonthDays(int(year), int(month)+1))
			days = pgtype.Days(int(year), int(month)+1, d)
		}
		x := int64(days) + int64(sign)*int64(iv.Days)
		if x > 110_000_000 || x < -3_000_000 {
			return 0, errTimestampRange
		}
		local = x*usPerDay + tod
		if x > 0 && local < 0 || !pgtype.TimestampInRange(local) {
			return 0, errTimestampRange
		}
		us = pgtype.ToUTC(local, zone)
	}
	z := us + int64(sign)*iv.Micros
	if (z > us) != (int64(sign)*iv.Micros > 0) && iv.Micros != 0 || !pgtype.TimestampInRange(z) {
		return 0, errTimestampRange
	}
	return z, nil
}

func subTimestamps(c *Call) {
	out, a, b := c.Out.Iv, c.Int64s(0), c.Int64s(1)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		if infinite(x) || infinite(y) {
			c.Fail(row, errInfiniteTimes)
			continue
		}
		d := x - y
		if (d < x) != (y > 0) {
			c.Fail(row, errIntervalRange)
			continue
		}
		out[row] = column.Interval{Days: int32(d / usPerDay), Micros: d % usPerDay}
	}
}

func addToTime(c *Call, tm, span int, sign int64) {
	out, a, b := c.Out.I64, c.Int64s(tm), c.Intervals(span)
	for _, row := range c.Rows() {
		_, out[row] = floorDiv(a.At(row)+sign*(b.At(row).Micros%usPerDay), usPerDay)
	}
}

func intervals2(name string, f func(a, b column.Interval) (column.Interval, bool)) Overload {
	return Overload{Name: name, Args: []column.Type{tInterval, tInterval}, Result: tInterval, Make: kernel(func(c *Call) {
		out, a, b := c.Out.Iv, c.Intervals(0), c.Intervals(1)
		for _, row := range c.Rows() {
			iv, ok := f(a.At(row), b.At(row))
			if !ok {
				c.Fail(row, errIntervalRange)
				continue
			}
			out[row] = iv
		}
	})}
}

func sumIntervals(a, b column.Interval) (column.Interval, bool) {
	months, ok1 := toInt32(int64(a.Months) + int64(b.Months))
	days, ok2 := toInt32(int64(a.Days) + int64(b.Days))
	us := a.Micros + b.Micros
	return column.Interval{Months: months, Days: days, Micros: us}, ok1 && ok2 && (us > a.Micros) == (b.Micros > 0)
}

// round6 rounds seconds to microseconds.
func round6(x float64) float64 { return math.RoundToEven(x*1e6) / 1e6 }

func scaleInterval(c *Call, span, factor int, divide bool) {
	out, a, b := c.Out.Iv, c.Intervals(span), c.Float64s(factor)
	for _, row := range c.Rows() {
		f := b.At(row)
		if divide && f == 0 {
			c.Fail(row, errDivZero)
			continue
		}
		iv, ok := scaledInterval(a.At(row), f, divide)
		if !ok {
			c.Fail(row, errIntervalRange)
			continue
		}
		out[row] = iv
	}
}

// scaledInterval multiplies or divides; what is left of months becomes days of 1/30 month, of days time, with PostgreSQL's roundings.
func scaledInterval(iv column.Interval, f float64, divide bool) (out column.Interval, ok bool) {
	by := func(x float64) float64 {
		if divide {
			return x / f
		}
		return x * f
	}
	months, days := by(float64(iv.Months)), by(float64(iv.Days))
	if !(months <= math.MaxInt32 && months >= math.MinInt32 && days <= math.MaxInt32 && days >= math.MinInt32) {
		return out, false
	}
	out.Months, out.Days = int32(months), int32(days)
	restDays := round6((months - float64(out.Months)) * 30)
	secs := round6((days - float64(out.Days) + restDays - math.Trunc(restDays)) * 86400)
	total := int64(out.Days)
	if math.Abs(secs) >= 86400 {
		n := math.Trunc(secs / 86400)
		total += int64(n)
		secs -= n * 86400
	}
	total += int64(restDays)
	if out.Days, ok = toInt32(total); !ok {
		return out, false
	}
	us := math.RoundToEven(by(float64(iv.Micros)) + secs*1e6)
	if !(us >= math.MinInt64 && us < math.MaxInt64) {
		return out, false
	}
	out.Micros = int64(us)
	return out, true
}
