package expr

import (
	"math"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// timeField is a part of a date, a time or an interval.
type timeField uint8

const (
	noField timeField = iota
	microsecondField
	millisecondField
	secondField
	minuteField
	hourField
	dayField
	weekField
	monthField
	quarterField
	yearField
	decadeField
	centuryField
	millenniumField
	julianField
	isoYearField
	dowField
	isoDowField
	doyField
	epochField
	zoneField
	zoneHourField
	zoneMinuteField
)

// timeFields are the names. As in PostgreSQL, only the first 10 characters of one matter.
var timeFields = func() map[string]timeField {
	m := map[string]timeField{}
	add := func(f timeField, names string) {
		for n := range strings.FieldsSeq(names) {
			m[n[:min(len(n), 10)]] = f
		}
	}
	add(microsecondField, "us usec usecs usecond useconds microsecond microseconds")
	add(millisecondField, "ms msec msecs msecond mseconds millisecond milliseconds")
	add(secondField, "s sec secs second seconds")
	add(minuteField, "m min mins minute minutes")
	add(hourField, "h hr hrs hour hours")
	add(dayField, "d day days")
	add(weekField, "w week weeks")
	add(monthField, "mon mons month months")
	add(quarterField, "qtr quarter")
	add(yearField, "y yr yrs year years")
	add(decadeField, "dec decs decade decades")
	add(centuryField, "c cent century centuries")
	add(millenniumField, "mil mils millennia millennium")
	add(julianField, "j jd julian")
	add(isoYearField, "isoyear")
	add(dowField, "dow")
	add(isoDowField, "isodow")
	add(doyField, "doy")
	add(epochField, "epoch")
	add(zoneField, "timezone")
	add(zoneHourField, "timezone_hour")
	add(zoneMinuteField, "timezone_minute")
	return m
}()

func fieldNamed(name []byte) timeField {
	var b [16]byte
	low := appendLower(b[:0], name)
	return timeFields[string(low[:min(len(low), 10)])]
}

// errTruncField is errField for date_trunc, which does not know what is no unit.
func errTruncField(name []byte, f timeField, k column.Kind) *pgerr.Error {
	if f >= julianField && f <= epochField {
		f = noField
	}
	return errField(name, f, k)
}

func errField(name []byte, f timeField, k column.Kind) *pgerr.Error {
	low := appendLower(nil, name)
	if f == noField {
		return pgerr.Newf(pgerr.InvalidParameterValue, "unit \"%s\" not recognized for type %s", low, kindNames[k])
	}
	return pgerr.Newf(pgerr.FeatureNotSupported, "unit \"%s\" not supported for type %s", low, kindNames[k])
}

// fieldCache remembers the last name that was looked up.
type fieldCache struct {
	name  []byte
	field timeField
}

func (f *fieldCache) of(name []byte) timeField {
	if f.field == noField || string(f.name) != string(name) {
		f.name, f.field = append(f.name[:0], name...), fieldNamed(name)
	}
	return f.field
}

var timeFieldFunctions = func() []Overload {
	var out []Overload
	for _, t := range []column.Type{tDate, tTime, tTimestamp, tTimestamptz, tInterval} {
		v := Immutable
		if t.Kind == column.Timestamptz {
			v = Zoned
		}
		out = append(out,
			Overload{Name: "extract", Args: []column.Type{tText, t}, Result: tNumeric, Volatility: v, Make: makePart(t.Kind, true)},
			Overload{Name: "date_part", Args: []column.Type{tText, t}, Result: tFloat8, Volatility: v, Make: makePart(t.Kind, false)},
		)
	}
	return out
}()

// part is the value of a field: n * 10^-scale, or something else that it says.
type part struct {
	n     int64
	scale int
	what  partKind
	dec   decimal.Decimal
	f     float64
}

type partKind uint8

const (
	partNumber   partKind = iota
	partOther             // dec and f
	partNull              // of an infinite time
	partInfinite          // with the sign of n
	partMissing           // the type has no such field
)

func makePart(k column.Kind, exact bool) func(*Site) (Kernel, error) {
	return func(*Site) (Kernel, error) {
		var cache fieldCache
		return func(c *Call) {
			names := c.Texts(0)
			if k == column.Timestamp && c.Const[0] {
				timestampParts(c, cache.of(names.At(0)), exact)
				return
			}
			for _, row := range c.Rows() {
				f := cache.of(names.At(row))
				var p part
				shown := k
				switch k {
				case column.Date:
					if exact {
						p = datePart(f, c.Int32s(1).At(row))
					} else {
						shown = column.Timestamp
						us, err := dateToTimestamp(c.Int32s(1).At(row))
						if err != nil {
							c.Fail(row, err)
							continue
						}
						p = timestampPart(f, us, us, 0, false)
					}
				case column.Time:
					p = timePart(f, c.Int64s(1).At(row))
				case column.IntervalKind:
					p = intervalPart(f, c.Intervals(1).At(row))
				case column.Timestamp:
					us := c.Int64s(1).At(row)
					p = timestampPart(f, us, us, 0, false)
				case column.Timestamptz:
					us := c.Int64s(1).At(row)
					off := 0
					if zone := c.Ctx.zone(); !infinite(us) && f != epochField {
						off = pgtype.OffsetAt(zone, us)
					}
					local := us
					if !infinite(us) {
						local += int64(off) * 1_000_000
					}
					p = timestampPart(f, local, us, off, true)
				}
				c.setPart(row, &p, f, shown, exact)
			}
		}, nil
	}
}

// setPart makes a part the row's result, and tells whether there is one.
func (c *Call) setPart(row int32, p *part, f timeField, shown column.Kind, exact bool) bool {
	switch {
	case p.what == partMissing:
		c.Fail(row, errField(c.Texts(0).At(row), f, shown))
		return false
	case p.what == partNull:
		c.Null(row)
		return false
	case exact:
		c.Out.Dec[row] = p.decimal()
	default:
		c.Out.F64[row] = p.float(f)
	}
	return true
}

// timestampParts takes one field of timestamps. Those that follow each other are mostly of the same hour, and so have the same hour, day or year.
func timestampParts(c *Call, f timeField, exact bool) {
	unit := int64(0) // for so long, from a multiple of it on, the field stays as it is
	switch f {
	case minuteField:
		unit = usPerDay / (24 * 60)
	case microsecondField, millisecondField, secondField, epochField, julianField, zoneField, zoneHourField, zoneMinuteField, noField:
	default:
		unit = usPerDay / 24
	}
	in := c.Int64s(1)
	from, to, last := int64(0), int64(0), int32(0) // what row last has holds for times from from on, before to
	for _, row := range c.Rows() {
		us := in.At(row)
		if us >= from && us < to {
			if exact {
				c.Out.Dec[row] = c.Out.Dec[last]
			} else {
				c.Out.F64[row] = c.Out.F64[last]
			}
			continue
		}
		p := timestampPart(f, us, us, 0, false)
		if !c.setPart(row, &p, f, column.Timestamp, exact) || unit == 0 || infinite(us) {
			continue
		}
		_, rest := floorDiv(us, unit)
		from, to, last = us-rest, us-rest+unit, row
	}
}

func (p *part) decimal() decimal.Decimal {
	switch p.what {
	case partOther:
		return p.dec
	case partInfinite:
		if p.n < 0 {
			return decimal.NegInf
		}
		return decimal.Inf
	}
	if p.scale == 0 {
		return decimal.FromInt64(p.n)
	}
	d, _ := decimal.New(p.n, p.scale) // the scale is 3 or 6
	return d
}

// float has the roundings of PostgreSQL's own sums of doubles.
func (p *part) float(f timeField) float64 {
	switch {
	case p.what == partOther:
		return p.f
	case p.what == partInfinite:
		return math.Inf(int(p.n))
	case p.scale == 3:
		return float64(p.n/1_000_000)*1000 + float64(p.n%1_000_000)/1000
	case p.scale == 6 && f == epochField:
		return float64(p.n) / 1e6
	case p.scale == 6:
		return float64(p.n/1_000_000) + float64(p.n%1_000_000)/1e6
	}
	return float64(p.n)
}

func whole(n int64) part { return part{n: n} }

func infinitePart(f timeField, sign int64) part {
	switch f {
	case yearField, decadeField, centuryField, millenniumField, julianField, isoYearField, epochField:
		return part{n: sign, what: partInfinite}
	case noField:
		return part{what: partMissing}
	}
	return part{what: partNull}
}

// isoWeek is the ISO week of a day, and the year that it belongs to.
func isoWeek(days int32) (year, week int) {
	thursday := days - int32(isoDow(days)) + 4
	year, _, _ = pgtype.Civil(thursday)
	return year, int(thursday-pgtype.Days(year, 1, 1))/7 + 1
}

// isoDow is 1 for Monday to 7 for Sunday.
func isoDow(days int32) int {
	d := (int(days)%7 + 7 + 3) % 7 // 1970-01-01 was a Thursday
	return d + 1
}

const julianEpoch = 2_440_588 // the Julian day of 1970-01-01

// shownYear is a year with 0 for 1 BC as EXTRACT shows it.
func shownYear(y int) int64 {
	if y > 0 {
		return int64(y)
	}
	return int64(y - 1)
}

func centuryOf(y, years int) int64 {
	if y > 0 {
		return int64((y + years - 1) / years)
	}
	return -int64((years - 1 - (y - 1)) / years)
}

func decadeOf(y int) int64 {
	if y >= 0 {
		return int64(y / 10)
	}
	return -int64((8 - (y - 1)) / 10)
}

// dayPart are the fields of a finite day.
func dayPart(f timeField, days int32) part {
	switch f {
	case dowField:
		return whole(int64(isoDow(days) % 7))
	case isoDowField:
		return whole(int64(isoDow(days)))
	case weekField:
		_, w := isoWeek(days)
		return whole(int64(w))
	case isoYearField:
		y, _ := isoWeek(days)
		return whole(shownYear(y))
	}
	y, m, d := pgtype.Civil(days)
	switch f {
	case dayField:
		return whole(int64(d))
	case monthField:
		return whole(int64(m))
	case quarterField:
		return whole(int64(m-1)/3 + 1)
	case yearField:
		return whole(shownYear(y))
	case decadeField:
		return whole(decadeOf(y))
	case centuryField:
		return whole(centuryOf(y, 100))
	case millenniumField:
		return whole(centuryOf(y, 1000))
	case doyField:
		return whole(int64(days-pgtype.Days(y, 1, 1)) + 1)
	}
	return part{what: partMissing}
}

func datePart(f timeField, days int32) part {
	switch f {
	case microsecondField, millisecondField, secondField, minuteField, hourField, zoneField, zoneHourField, zoneMinuteField:
		return part{what: partMissing}
	}
	switch {
	case days == column.DateInfinity:
		return infinitePart(f, 1)
	case days == column.DateNegInfinity:
		return infinitePart(f, -1)
	case f == julianField:
		return whole(int64(days) + julianEpoch)
	case f == epochField:
		return whole(int64(days) * 86400)
	}
	return dayPart(f, days)
}

func timePart(f timeField, us int64) part {
	switch f {
	case microsecondField:
		return whole(us % 60_000_000)
	case millisecondField:
		return part{n: us % 60_000_000, scale: 3}
	case secondField:
		return part{n: us % 60_000_000, scale: 6}
	case minuteField:
		return whole(us / 60_000_000 % 60)
	case hourField:
		return whole(us / 3_600_000_000)
	case epochField:
		return part{n: us, scale: 6}
	}
	return part{what: partMissing}
}

func timestampPart(f timeField, local, utc int64, offset int, zoned bool) part {
	if infinite(utc) {
		sign := int64(1)
		if utc < 0 {
			sign = -1
		}
		return infinitePart(f, sign)
	}
	switch f {
	case epochField:
		return part{n: utc, scale: 6}
	case zoneField, zoneHourField, zoneMinuteField:
		switch {
		case !zoned:
			return part{what: partMissing}
		case f == zoneField:
			return whole(int64(offset))
		case f == zoneHourField:
			return whole(int64(offset / 3600))
		}
		return whole(int64(offset / 60 % 60))
	}
	days, us := pgtype.SplitMicros(local)
	switch f {
	case microsecondField, millisecondField, secondField, minuteField, hourField:
		return timePart(f, us)
	case julianField:
		p := part{what: partOther, f: float64(int64(days)+julianEpoch) + (float64(us/1_000_000)+float64(us%1_000_000)/1e6)/86400}
		frac, _ := decimal.FromInt64(us).Div(decimal.FromInt64(usPerDay))
		p.dec, _ = decimal.FromInt64(int64(days) + julianEpoch).Add(frac)
		return p
	}
	return dayPart(f, days)
}

func intervalPart(f timeField, iv column.Interval) part {
	switch f {
	case microsecondField, millisecondField, secondField, minuteField, hourField:
		return timePart(f, iv.Micros)
	case dayField:
		return whole(int64(iv.Days))
	case monthField:
		return whole(int64(iv.Months % 12))
	case quarterField:
		return whole(int64(iv.Months%12)/3 + 1)
	case yearField:
		return whole(int64(iv.Months / 12))
	case decadeField:
		return whole(int64(iv.Months / 120))
	case centuryField:
		return whole(int64(iv.Months / 1200))
	case millenniumField:
		return whole(int64(iv.Months / 12000))
	case epochField:
		y, m := int64(iv.Months/12), int64(iv.Months%12)
		secs := (1461*y + 120*m + 4*int64(iv.Days)) * (86400 / 4)
		p := part{what: partOther}
		p.f = float64(iv.Micros)/1e6 + 365.25*86400*float64(y) + 30*86400*float64(m) + 86400*float64(iv.Days)
		a, _ := decimal.New(iv.Micros, 6)
		p.dec, _ = decimal.FromInt64(secs).Add(a)
		return p
	}
	return part{what: partMissing}
}
