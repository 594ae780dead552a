package expr

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// timeFunctions make times of parts, convert among zones, and say how old something is.
var timeFunctions = func() []Overload {
	out := []Overload{
		{Name: "clock_timestamp", Result: tTimestamptz, Volatility: Stable, Make: clock("clock_timestamp").Make},
		{Name: "to_timestamp", Args: []column.Type{tFloat8}, Result: tTimestamptz, Make: kernel(epochToTimestamp)},
		{Name: "make_date", Args: []column.Type{tInt4, tInt4, tInt4}, Result: tDate, Make: kernel(makeDate)},
		{Name: "make_time", Args: []column.Type{tInt4, tInt4, tFloat8}, Result: tTime, Make: kernel(makeTime)},
		{Name: "make_timestamp", Args: []column.Type{tInt4, tInt4, tInt4, tInt4, tInt4, tFloat8}, Result: tTimestamp, Make: makeTimestamp},
		{
			Name: "make_timestamptz", Args: []column.Type{tInt4, tInt4, tInt4, tInt4, tInt4, tFloat8}, Result: tTimestamptz, Volatility: Zoned,
			Make: makeTimestamp,
		},
		{Name: "make_timestamptz", Args: []column.Type{tInt4, tInt4, tInt4, tInt4, tInt4, tFloat8, tText}, Result: tTimestamptz, Make: makeTimestamp},
		{Name: "justify_hours", Args: []column.Type{tInterval}, Result: tInterval, Make: justify(justifyHours)},
		{Name: "justify_days", Args: []column.Type{tInterval}, Result: tInterval, Make: justify(justifyDays)},
		{Name: "justify_interval", Args: []column.Type{tInterval}, Result: tInterval, Make: justify(justifyAll)},
		{Name: "isfinite", Args: []column.Type{tDate}, Result: tBool, Make: kernel(func(c *Call) {
			out, a := c.Out.Bools, c.Int32s(0)
			for _, row := range c.Rows() {
				d := a.At(row)
				out[row] = d != column.DateInfinity && d != column.DateNegInfinity
			}
		})},
		finite(tTimestamp), finite(tTimestamptz),
		{Name: "isfinite", Args: []column.Type{tInterval}, Result: tBool, Make: kernel(func(c *Call) {
			for _, row := range c.Rows() {
				c.Out.Bools[row] = true
			}
		})},
		{Name: "age", Args: []column.Type{tTimestamp, tTimestamp}, Result: tInterval, Make: kernel(func(c *Call) { age(c) })},
		{Name: "age", Args: []column.Type{tTimestamptz, tTimestamptz}, Result: tInterval, Volatility: Zoned, Make: kernel(func(c *Call) { age(c) })},
		{Name: "age", Args: []column.Type{tTimestamp}, Result: tInterval, Volatility: Stable, Make: kernel(func(c *Call) { age(c) })},
		{Name: "age", Args: []column.Type{tTimestamptz}, Result: tInterval, Volatility: Stable, Make: kernel(func(c *Call) { age(c) })},
		{Name: "timezone", Args: []column.Type{tText, tTimestamp}, Result: tTimestamptz, Make: makeTimezone},
		{Name: "timezone", Args: []column.Type{tText, tTimestamptz}, Result: tTimestamp, Make: makeTimezone},
		{Name: "timezone", Args: []column.Type{tInterval, tTimestamp}, Result: tTimestamptz, Make: kernel(intervalZone)},
		{Name: "timezone", Args: []column.Type{tInterval, tTimestamptz}, Result: tTimestamp, Make: kernel(intervalZone)},
	}
	spans := []column.Type{tInt4, tInt4, tInt4, tInt4, tInt4, tInt4, tFloat8}
	for n := range len(spans) + 1 {
		out = append(out, Overload{Name: "make_interval", Args: spans[:n], Result: tInterval, Make: kernel(makeInterval)})
	}
	return out
}()

func finite(t column.Type) Overload {
	return Overload{Name: "isfinite", Args: []column.Type{t}, Result: tBool, Make: kernel(func(c *Call) {
		out, a := c.Out.Bools, c.Int64s(0)
		for _, row := range c.Rows() {
			out[row] = !infinite(a.At(row))
		}
	})}
}

// secondsTo2000 is what PostgreSQL's own epoch is after the Unix one; it rounds doubles there.
const secondsTo2000 = 946_684_800

func epochToTimestamp(c *Call) {
	out, a := c.Out.I64, c.Float64s(0)
	for _, row := range c.Rows() {
		s := a.At(row)
		switch {
		case math.IsNaN(s):
			c.Fail(row, errTimestampNaN)
		case math.IsInf(s, 1):
			out[row] = column.TimestampInfinity
		case math.IsInf(s, -1):
			out[row] = column.TimestampNegInfinity
		default:
			us := math.RoundToEven((s - secondsTo2000) * 1e6)
			if !(us > math.MinInt64 && us < math.MaxInt64-secondsTo2000*1e6) || !pgtype.TimestampInRange(int64(us)+secondsTo2000*1_000_000) {
				c.Fail(row, pgerr.Newf(pgerr.DatetimeFieldOverflow, "timestamp out of range: \"%s\"", shortFloat(s)))
				continue
			}
			out[row] = int64(us) + secondsTo2000*1_000_000
		}
	}
}

// shortFloat is C's %g.
func shortFloat(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

var errTimestampNaN = pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp cannot be NaN")

// dateOf is a day from its parts; negative years are BC. shown is the year for messages.
func dateOf(y, m, d, shown int32) (int32, *pgerr.Error) {
	year := int(y)
	if year < 0 {
		year++
	}
	if y == 0 || m < 1 || m > 12 || d < 1 || int(d) > pgtype.MonthDays(year, int(m)) {
		return 0, errDateParts("date field value out of range", shown, m, d)
	}
	if year > 6_000_000 || year < -5000 || !pgtype.DateInRange(int64(pgtype.Days(year, int(m), int(d)))) {
		return 0, errDateParts("date out of range", shown, m, d)
	}
	return pgtype.Days(year, int(m), int(d)), nil
}

func errDateParts(what string, y, m, d int32) *pgerr.Error {
	return pgerr.Newf(pgerr.DatetimeFieldOverflow, "%s: %d-%02d-%02d", what, y, m, d)
}

func timeOf(h, m int32, s float64) (int64, *pgerr.Error) {
	bad := h < 0 || m < 0 || m > 59 || math.IsNaN(s) || s < 0 || s > 60 || h > 24 || h == 24 && (m > 0 || s > 0)
	if bad {
		return 0, pgerr.Newf(pgerr.DatetimeFieldOverflow, "time field value out of range: %d:%02d:%s", h, m, padNumber(s))
	}
	return (int64(h)*60+int64(m))*60_000_000 + int64(math.RoundToEven(s*1e6)), nil
}

// padNumber is C's %02g.
func padNumber(x float64) string {
	s := shortFloat(x)
	if math.IsNaN(x) {
		s = "nan"
	}
	return fmt.Sprintf("%02s", s)
}

func makeDate(c *Call) {
	out, y, m, d := c.Out.I32, c.Int32s(0), c.Int32s(1), c.Int32s(2)
	for _, row := range c.Rows() {
		year := y.At(row)
		shown := year
		if year < 0 { // PostgreSQL shows it as it counts it
			shown++
		}
		days, err := dateOf(year, m.At(row), d.At(row), shown)
		if err != nil {
			c.Fail(row, err)
			continue
		}
		out[row] = days
	}
}

func makeTime(c *Call) {
	out, h, m, s := c.Out.I64, c.Int32s(0), c.Int32s(1), c.Float64s(2)
	for _, row := range c.Rows() {
		us, err := timeOf(h.At(row), m.At(row), s.At(row))
		if err != nil {
			c.Fail(row, err)
			continue
		}
		out[row] = us
	}
}

func makeTimestamp(s *Site) (Kernel, error) {
	zoned := s.Result.Kind == column.Timestamptz
	return func(c *Call) {
		out := c.Out.I64
		y, mo, d, h, mi, s := c.Int32s(0), c.Int32s(1), c.Int32s(2), c.Int32s(3), c.Int32s(4), c.Float64s(5)
		zone := c.Ctx.zone()
		for _, row := range c.Rows() {
			days, err := dateOf(y.At(row), mo.At(row), d.At(row), y.At(row))
			var us int64
			if err == nil {
				us, err = timeOf(h.At(row), mi.At(row), s.At(row))
			}
			if err == nil && (int64(days) > 107_000_000 || !pgtype.TimestampInRange(int64(days)*usPerDay+us)) {
				err = pgerr.Newf(pgerr.DatetimeFieldOverflow, "timestamp out of range: %d-%02d-%02d %d:%02d:%s",
					y.At(row), mo.At(row), d.At(row), h.At(row), mi.At(row), padNumber(s.At(row)))
			}
			if err == nil && len(c.Args) == 7 {
				name := c.Texts(6).At(row)
				var bad error
				if zone, bad = pgtype.Zone(string(name), true); bad != nil {
					err = pgerr.From(bad)
				} else if len(name) > 0 && name[0] >= '0' && name[0] <= '9' {
					err = pgerr.Newf(pgerr.InvalidParameterValue, "invalid input syntax for type numeric time zone: \"%s\"", name).
						WithHint("Numeric time zones must have \"-\" or \"+\" as first character.")
				}
			}
			if err != nil {
				c.Fail(row, err)
				continue
			}
			us += int64(days) * usPerDay
			if zoned {
				us = pgtype.ToUTC(us, zone)
			}
			out[row] = us
		}
	}, nil
}

func makeInterval(c *Call) {
	out := c.Out.Iv
	for _, row := range c.Rows() {
		var secs float64
		if len(c.Args) == 7 {
			secs = c.Float64s(6).At(row)
		}
		arg := func(k int) int64 { return int64(c.intArg(k, row, 0)) }
		months, ok1 := toInt32(arg(0)*12 + arg(1))
		days, ok2 := toInt32(arg(2)*7 + arg(3))
		secs = math.RoundToEven(secs * 1e6)
		us := arg(4)*3_600_000_000 + arg(5)*60_000_000
		if !ok1 || !ok2 || math.IsInf(secs, 0) || math.IsNaN(secs) || math.Abs(secs)+math.Abs(float64(us)) >= math.MaxInt64 {
			c.Fail(row, errIntervalRange)
			continue
		}
		out[row] = column.Interval{Months: months, Days: days, Micros: us + int64(secs)}
	}
}

func justify(f func(column.Interval) (column.Interval, bool)) func(*Site) (Kernel, error) {
	return kernel(func(c *Call) {
		out, a := c.Out.Iv, c.Intervals(0)
		for _, row := range c.Rows() {
			iv, ok := f(a.At(row))
			if !ok {
				c.Fail(row, errIntervalRange)
				continue
			}
			out[row] = iv
		}
	})
}

func justifyHours(iv column.Interval) (column.Interval, bool) {
	days := iv.Micros / usPerDay
	iv.Micros -= days * usPerDay
	days += int64(iv.Days)
	switch {
	case days > 0 && iv.Micros < 0:
		iv.Micros, days = iv.Micros+usPerDay, days-1
	case days < 0 && iv.Micros > 0:
		iv.Micros, days = iv.Micros-usPerDay, days+1
	}
	var ok bool
	iv.Days, ok = toInt32(days)
	return iv, ok
}

func justifyDays(iv column.Interval) (column.Interval, bool) {
	months := int64(iv.Days / 30)
	iv.Days -= int32(months) * 30
	months += int64(iv.Months)
	switch {
	case months > 0 && iv.Days < 0:
		iv.Days, months = iv.Days+30, months-1
	case months < 0 && iv.Days > 0:
		iv.Days, months = iv.Days-30, months+1
	}
	var ok bool
	iv.Months, ok = toInt32(months)
	return iv, ok
}

// justifyAll brings all parts to one sign.
func justifyAll(iv column.Interval) (column.Interval, bool) {
	days, months := int64(iv.Days), int64(iv.Months)
	if days > 0 && iv.Micros > 0 || days < 0 && iv.Micros < 0 {
		n := days / 30
		days -= n * 30
		months += n
	}
	n := iv.Micros / usPerDay
	iv.Micros -= n * usPerDay
	days += n
	n = days / 30
	days -= n * 30
	months += n
	switch {
	case months > 0 && (days < 0 || days == 0 && iv.Micros < 0):
		days, months = days+30, months-1
	case months < 0 && (days > 0 || days == 0 && iv.Micros > 0):
		days, months = days-30, months+1
	}
	switch {
	case days > 0 && iv.Micros < 0:
		iv.Micros, days = iv.Micros+usPerDay, days-1
	case days < 0 && iv.Micros > 0:
		iv.Micros, days = iv.Micros-usPerDay, days+1
	}
	var ok1, ok2 bool
	iv.Days, ok1 = toInt32(days)
	iv.Months, ok2 = toInt32(months)
	return iv, ok1 && ok2
}

// age is the difference in years, months and days as a calendar shows them; of one argument, from the current day.
func age(c *Call) {
	out := c.Out.Iv
	zone := c.zoneOf(c.Args[0].Type.Kind)
	a := c.Int64s(0)
	today, _ := pgtype.SplitMicros(pgtype.ToLocal(c.Ctx.Now, c.Ctx.zone()))
	for _, row := range c.Rows() {
		x, y := int64(today)*usPerDay, a.At(row)
		if len(c.Args) == 2 {
			x, y = y, c.Int64s(1).At(row)
			if !infinite(x) {
				x = pgtype.ToLocal(x, zone)
			}
		}
		if infinite(x) || infinite(y) {
			c.Fail(row, errTimestampRange)
			continue
		}
		out[row] = calendarAge(x, pgtype.ToLocal(y, zone))
	}
}

func calendarAge(x, y int64) column.Interval {
	d1, t1 := pgtype.SplitMicros(x)
	d2, t2 := pgtype.SplitMicros(y)
	y1, m1, day1 := pgtype.Civil(d1)
	y2, m2, day2 := pgtype.Civil(d2)
	us, days, months := t1-t2, day1-day2, (y1-y2)*12+m1-m2
	sign := 1
	year, month := y2, m2 // the month that lends its days
	if x < y {
		sign, us, days, months = -1, -us, -days, -months
		year, month = y1, m1
	}
	if us < 0 {
		us, days = us+usPerDay, days-1
	}
	if days < 0 {
		days, months = days+pgtype.MonthDays(year, month), months-1
	}
	return column.Interval{Months: int32(sign * months), Days: int32(sign * days), Micros: int64(sign) * us}
}

// inZone is AT TIME ZONE: an instant of what clocks show, or the other way round.
func inZone(us int64, zone *time.Location, from column.Kind) (int64, *pgerr.Error) {
	if infinite(us) {
		return us, nil
	}
	if from == column.Timestamp {
		us = pgtype.ToUTC(us, zone)
	} else {
		us = pgtype.ToLocal(us, zone)
	}
	if !pgtype.TimestampInRange(us) {
		return 0, errTimestampRange
	}
	return us, nil
}

func makeTimezone(s *Site) (Kernel, error) {
	var zones zoneCache
	from := s.Args[1].Kind
	return func(c *Call) {
		out, names, a := c.Out.I64, c.Texts(0), c.Int64s(1)
		for _, row := range c.Rows() {
			us := a.At(row)
			if infinite(us) {
				out[row] = us
				continue
			}
			zone, err := zones.of(names.At(row))
			if err == nil {
				us, err = inZone(us, zone, from)
			}
			if err != nil {
				c.Fail(row, err)
				continue
			}
			out[row] = us
		}
	}, nil
}

func intervalZone(c *Call) {
	out, spans, a := c.Out.I64, c.Intervals(0), c.Int64s(1)
	for _, row := range c.Rows() {
		us, iv := a.At(row), spans.At(row)
		if infinite(us) {
			out[row] = us
			continue
		}
		if iv.Months != 0 || iv.Days != 0 {
			c.Fail(row, pgerr.Newf(pgerr.InvalidParameterValue, "interval time zone \"%s\" must not include months or days", pgtype.AppendInterval(nil, iv)))
			continue
		}
		off := iv.Micros / 1_000_000 * 1_000_000
		if c.Args[1].Type.Kind == column.Timestamp {
			off = -off
		}
		us += off
		if !pgtype.TimestampInRange(us) {
			c.Fail(row, errTimestampRange)
			continue
		}
		out[row] = us
	}
}
