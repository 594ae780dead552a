package expr

import (
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// timeTruncation are date_trunc and date_bin.
var timeTruncation = []Overload{
	{Name: "date_trunc", Args: []column.Type{tText, tTimestamp}, Result: tTimestamp, Make: makeTrunc},
	{Name: "date_trunc", Args: []column.Type{tText, tTimestamptz}, Result: tTimestamptz, Volatility: Zoned, Make: makeTrunc},
	{Name: "date_trunc", Args: []column.Type{tText, tTimestamptz, tText}, Result: tTimestamptz, Make: makeTrunc},
	{Name: "date_trunc", Args: []column.Type{tText, tInterval}, Result: tInterval, Make: makeTruncInterval},
	{Name: "date_bin", Args: []column.Type{tInterval, tTimestamp, tTimestamp}, Result: tTimestamp, Make: kernel(dateBin)},
	{Name: "date_bin", Args: []column.Type{tInterval, tTimestamptz, tTimestamptz}, Result: tTimestamptz, Make: kernel(dateBin)},
}

// zoneCache remembers the last zone that was looked up by name.
type zoneCache struct {
	name string
	zone *time.Location
}

func (z *zoneCache) of(name []byte) (*time.Location, *pgerr.Error) {
	if z.zone == nil || z.name != string(name) {
		loc, err := pgtype.Zone(string(name), false)
		if err != nil {
			return nil, pgerr.From(err)
		}
		z.name, z.zone = string(name), loc
	}
	return z.zone, nil
}

func makeTrunc(s *Site) (Kernel, error) {
	var fields fieldCache
	var zones zoneCache
	kind := s.Args[1].Kind
	return func(c *Call) {
		out, names, a, zone := c.Out.I64, c.Texts(0), c.Int64s(1), c.zoneOf(kind)
		for _, row := range c.Rows() {
			us := a.At(row)
			if infinite(us) {
				out[row] = us
				continue
			}
			if len(c.Args) == 3 {
				var err *pgerr.Error
				if zone, err = zones.of(c.Texts(2).At(row)); err != nil {
					c.Fail(row, err)
					continue
				}
			}
			f := fields.of(names.At(row))
			z, ok := truncate(f, us, zone)
			if !ok {
				c.Fail(row, errTruncField(names.At(row), f, kind))
				continue
			}
			if !pgtype.TimestampInRange(z) {
				c.Fail(row, errTimestampRange)
				continue
			}
			out[row] = z
		}
	}, nil
}

// truncate cuts an instant down to a field as clocks in the zone show it.
func truncate(f timeField, us int64, zone *time.Location) (int64, bool) {
	var unit int64
	switch f {
	case microsecondField:
		return us, true
	case millisecondField:
		unit = 1000
	case secondField:
		unit = 1_000_000
	case minuteField:
		unit = 60_000_000
	case hourField:
		unit = 3_600_000_000
	case dayField:
		unit = usPerDay
	}
	local := pgtype.ToLocal(us, zone)
	if unit != 0 {
		_, rest := floorDiv(local, unit)
		if f != dayField || zone == time.UTC {
			return us - rest, true
		}
		return pgtype.ToUTC(local-rest, zone), true
	}
	days, _ := pgtype.SplitMicros(local)
	first, ok := firstDay(f, days)
	return pgtype.ToUTC(int64(first)*usPerDay, zone), ok
}

// firstDay is the first day of a week, month, quarter and so on.
func firstDay(f timeField, days int32) (int32, bool) {
	if f == weekField {
		return days - int32(isoDow(days)) + 1, true
	}
	y, m, _ := pgtype.Civil(days)
	switch f {
	case monthField:
	case quarterField:
		m = (m-1)/3*3 + 1
	case yearField:
		m = 1
	case decadeField:
		m = 1
		if y > 0 {
			y = y / 10 * 10
		} else {
			y = -((8 - (y - 1)) / 10) * 10
		}
	case centuryField, millenniumField:
		m = 1
		n := 100
		if f == millenniumField {
			n = 1000
		}
		if y > 0 {
			y = (y+n-1)/n*n - n + 1
		} else {
			y = -((n-1-(y-1))/n)*n + 1
		}
	default:
		return 0, false
	}
	return pgtype.Days(y, m, 1), true
}

func makeTruncInterval(*Site) (Kernel, error) {
	var fields fieldCache
	return func(c *Call) {
		out, names, a := c.Out.Iv, c.Texts(0), c.Intervals(1)
		for _, row := range c.Rows() {
			f := fields.of(names.At(row))
			iv, ok := truncateInterval(f, a.At(row))
			if !ok {
				err := errTruncField(names.At(row), f, column.IntervalKind)
				if f == weekField {
					err = err.WithDetail("Months usually have fractional weeks.")
				}
				c.Fail(row, err)
				continue
			}
			out[row] = iv
		}
	}, nil
}

func truncateInterval(f timeField, iv column.Interval) (column.Interval, bool) {
	months := map[timeField]int32{millenniumField: 12000, centuryField: 1200, decadeField: 120, yearField: 12, quarterField: 3, monthField: 1}
	micros := map[timeField]int64{
		dayField: iv.Micros, hourField: 3_600_000_000, minuteField: 60_000_000, secondField: 1_000_000, millisecondField: 1000, microsecondField: 1,
	}
	if n, ok := months[f]; ok {
		return column.Interval{Months: iv.Months - iv.Months%n}, true
	}
	n, ok := micros[f]
	switch {
	case f == dayField:
		iv.Micros = 0
	case ok:
		iv.Micros -= iv.Micros % n
	}
	return iv, ok
}

var (
	errBinMonths = pgerr.New(pgerr.FeatureNotSupported, "timestamps cannot be binned into intervals containing months or years")
	errBinStride = pgerr.New(pgerr.DatetimeFieldOverflow, "stride must be greater than zero")
	errBinOrigin = pgerr.New(pgerr.DatetimeFieldOverflow, "origin out of range")
)

func dateBin(c *Call) {
	out, strides, a, origins := c.Out.I64, c.Intervals(0), c.Int64s(1), c.Int64s(2)
	for _, row := range c.Rows() {
		us, iv, origin := a.At(row), strides.At(row), origins.At(row)
		if infinite(us) {
			out[row] = us
			continue
		}
		days := int64(iv.Days) * usPerDay
		stride := days + iv.Micros
		var err *pgerr.Error
		switch {
		case infinite(origin):
			err = errBinOrigin
		case iv.Months != 0:
			err = errBinMonths
		case iv.Micros != 0 && (stride > days) != (iv.Micros > 0) || int64(iv.Days) > 1<<62/usPerDay || int64(iv.Days) < -1<<62/usPerDay:
			err = errIntervalRange
		case stride <= 0:
			err = errBinStride
		case (us-origin < us) != (origin > 0):
			err = errIntervalRange
		}
		if err != nil {
			c.Fail(row, err)
			continue
		}
		_, rest := floorDiv(us-origin, stride)
		out[row] = us - rest
		if !pgtype.TimestampInRange(out[row]) || out[row] > us {
			c.Fail(row, errTimestampRange)
		}
	}
}
