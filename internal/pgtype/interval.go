package pgtype

import (
	"math"
	"strconv"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// unit is a unit of intervals: so many months, days or microseconds.
type unit struct {
	months, days int32
	micros       int64
	field        uint16 // a bit of its own: a field comes once
}

// The fields that a time sets.
const (
	fieldSecond = 1 << iota
	fieldMinute
	fieldHour
	fieldMonth
	fieldMilli
	fieldMicro

	fieldSeconds = fieldSecond | fieldMilli | fieldMicro // what seconds with a fraction set
)

var units = func() map[string]unit {
	m := make(map[string]unit)
	next := uint16(fieldMicro << 1)
	add := func(u unit, names ...string) {
		if u.field == 0 {
			u.field = next
			next <<= 1
		}
		for _, n := range names {
			m[n] = u
		}
	}
	add(unit{micros: 1, field: fieldMicro}, "us", "usec", "usecs", "usecond", "useconds", "microsecon", "microsecond", "microseconds")
	add(unit{micros: 1000, field: fieldMilli}, "ms", "msec", "msecs", "msecond", "mseconds", "millisecon", "millisecond", "milliseconds")
	add(unit{micros: microsPerSecond, field: fieldSecond}, "s", "sec", "secs", "second", "seconds")
	add(unit{micros: microsPerMinute, field: fieldMinute}, "m", "min", "mins", "minute", "minutes")
	add(unit{micros: microsPerHour, field: fieldHour}, "h", "hr", "hrs", "hour", "hours")
	add(unit{days: 1}, "d", "day", "days")
	add(unit{days: 7}, "w", "week", "weeks")
	add(unit{months: 1, field: fieldMonth}, "mon", "mons", "month", "months")
	add(unit{months: 12}, "y", "yr", "yrs", "year", "years")
	add(unit{months: 120}, "dec", "decs", "decade", "decades")
	add(unit{months: 1200}, "c", "cent", "century", "centuries")
	add(unit{months: 12000}, "mil", "mils", "millennia", "millennium", "millenniums")
	return m
}()

// spanSum collects an interval; over tells that a part is out of range.
type spanSum struct {
	months, days, micros int64
	over                 bool
}

// add adds n of a unit and a fraction of it (0 <= |frac| < 1, with n's sign), which spills into smaller units: of years into months, of
// months into days of 1/30, of days into time.
func (s *spanSum) add(n int64, frac float64, u unit) {
	if u.micros == 0 && n != int64(int32(n)) {
		s.over = true
		return
	}
	switch {
	case u.months > 0:
		s.months = s.plus(s.months, s.times(n, int64(u.months)))
		if frac == 0 {
			return
		}
		if u.months >= 12 {
			s.months = s.plus(s.months, int64(math.RoundToEven(frac*float64(u.months))))
			return
		}
		s.fractionDays(frac * 30 * float64(u.months))
	case u.days > 0:
		s.days = s.plus(s.days, s.times(n, int64(u.days)))
		if frac != 0 {
			s.fractionDays(frac * float64(u.days))
		}
	default:
		s.micros = s.plus(s.micros, s.times(n, u.micros))
		if frac != 0 {
			s.micros = s.plus(s.micros, int64(math.RoundToEven(frac*float64(u.micros))))
		}
	}
}

func (s *spanSum) fractionDays(d float64) {
	whole := math.Trunc(d)
	s.days = s.plus(s.days, int64(whole))
	s.micros = s.plus(s.micros, int64(math.RoundToEven((d-whole)*microsPerDay)))
}

func (s *spanSum) plus(a, b int64) int64 {
	c := a + b
	if (a^c)&(b^c) < 0 {
		s.over = true
	}
	return c
}

func (s *spanSum) times(a, b int64) int64 {
	c := a * b
	if a != 0 && c/a != b {
		s.over = true
	}
	return c
}

func (s *spanSum) interval() (column.Interval, bool) {
	if s.over || s.months != int64(int32(s.months)) || s.days != int64(int32(s.days)) {
		return column.Interval{}, false
	}
	return column.Interval{Months: int32(s.months), Days: int32(s.days), Micros: s.micros}, true
}

func (s *spanSum) negate() {
	if s.micros == math.MinInt64 {
		s.over = true
	}
	s.months, s.days, s.micros = -s.months, -s.days, -s.micros
}

// ParseInterval reads an interval in any of PostgreSQL's forms: verbose ("1 day 2 hours ago", "1 day 02:03:04"), SQL ("1-2", "3
// 04:05:06") and ISO 8601 ("P1DT2H", "P0001-02-03T04:05:06").
func ParseInterval(text []byte) (column.Interval, error) {
	s := trim(text)
	if len(s) == 0 || len(s) > maxDateText {
		return column.Interval{}, badFormat.error("interval", text, "")
	}
	var sum spanSum
	var f fault
	if s[0] == 'P' {
		f = sum.iso(s)
	} else {
		f = sum.verbose(s)
	}
	if f == badField || f == fine && sum.over {
		f = badIntervalOF
	}
	if f != fine {
		return column.Interval{}, f.error("interval", text, "")
	}
	iv, ok := sum.interval()
	if !ok && sum.days == int64(int32(sum.days)) {
		return column.Interval{}, pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
	}
	if !ok {
		return column.Interval{}, badIntervalOF.error("interval", text, "")
	}
	return iv, nil
}

// amount is a number with its sign.
type amount struct {
	n    int64
	frac float64
	neg  bool // also of -0
}

// readAmount reads digits with a fraction at i.
func readAmount(s []byte, i int, neg bool) (a amount, end int, f fault) {
	j := digitsEnd(s, i)
	if j-i > 18 {
		return a, j, badField
	}
	for _, c := range s[i:j] {
		a.n = a.n*10 + int64(c-'0')
	}
	end = j
	if j < len(s) && s[j] == '.' {
		end = digitsEnd(s, j+1)
		scale := 1.0
		for _, c := range s[j+1 : min(end, j+19)] {
			scale *= 10
			a.frac = a.frac*10 + float64(c-'0')
		}
		a.frac /= scale
	}
	if end == i || end == i+1 && s[i] == '.' {
		return a, end, badFormat
	}
	a.neg = neg
	if neg {
		a.n, a.frac = -a.n, -a.frac
	}
	return a, end, fine
}

func (s *spanSum) verbose(t []byte) fault {
	i, parts, ago := 0, 0, false
	var pending *amount // a number whose unit has not come yet
	var held amount
	seen, twice := uint16(0), false
	see := func(fields uint16) {
		twice = twice || seen&fields != 0
		seen |= fields
	}
	flush := func(u unit) {
		s.add(pending.n, pending.frac, u)
		if u.field == fieldSecond && pending.frac != 0 {
			see(fieldSeconds)
		} else {
			see(u.field)
		}
		pending = nil
		parts++
	}
	for i < len(t) {
		c := t[i]
		switch {
		case isSpace(c) || c == '@' && parts == 0 || c == ',':
			i++
			continue
		case ago:
			return badFormat
		case c == '+' || c == '-' || isDigit(c) || c == '.':
			neg := c == '-'
			if c == '+' || c == '-' {
				i++
				for i < len(t) && isSpace(t[i]) {
					i++
				}
				if i == len(t) || !isDigit(t[i]) && t[i] != '.' {
					return badFormat
				}
			}
			j := digitsEnd(t, i)
			switch {
			case j < len(t) && t[j] == ':':
				// A number before a time is of days.
				if pending != nil {
					flush(units["day"])
				}
				for j < len(t) && (isDigit(t[j]) || t[j] == ':' || t[j] == '.') {
					j++
				}
				see(fieldHour | fieldMinute | fieldSeconds)
				h, m, sec, frac, f := splitClock(t[i:j])
				if f != fine {
					return f
				}
				rest := int64(m)*microsPerMinute + int64(sec)*microsPerSecond + frac
				if neg { // before they are put together: the smallest interval has no positive one
					h, rest = -h, -rest
				}
				s.micros = s.plus(s.micros, s.plus(s.times(h, microsPerHour), rest))
				parts++
				i = j
			case j > i && j+1 < len(t) && t[j] == '-' && isDigit(t[j+1]):
				// years-months
				if pending != nil {
					return badFormat
				}
				k := digitsEnd(t, j+1)
				if k < len(t) && t[k] == '-' {
					return badFormat // a date
				}
				if j-i > 9 || k-j-1 > 2 {
					return badField
				}
				y, m := int64(atoi(t[i:j])), int64(atoi(t[j+1:k]))
				if m > 11 {
					return badField
				}
				m += 12 * y
				if neg {
					m = -m
				}
				s.months = s.plus(s.months, m)
				see(fieldMonth | units["year"].field)
				parts++
				i = k
			default:
				if pending != nil {
					return badFormat
				}
				a, end, f := readAmount(t, i, neg)
				if f != fine {
					return f
				}
				held = a
				pending = &held
				i = end
			}
		case isAlpha(c):
			j := i
			for j < len(t) && isAlpha(t[j]) {
				j++
			}
			w := lowered(t[i:j])
			i = j
			if w == "ago" {
				if pending != nil || parts == 0 {
					return badFormat
				}
				ago = true
				continue
			}
			u, ok := units[w]
			if !ok || pending == nil {
				return badFormat
			}
			flush(u)
		default:
			return badFormat
		}
	}
	if pending != nil {
		flush(units["second"])
	}
	if parts == 0 || twice {
		return badFormat
	}
	if ago {
		s.negate()
	}
	return fine
}

// iso reads ISO 8601 durations: with designators, or in the alternative form that looks like a timestamp.
func (s *spanSum) iso(t []byte) fault {
	if len(t) < 2 {
		return badFormat
	}
	i, inTime, parts := 1, false, 0
	for i < len(t) {
		if t[i] == 'T' && !inTime {
			inTime = true
			i++
			continue
		}
		neg := false
		start := i
		if t[i] == '-' || t[i] == '+' {
			neg = t[i] == '-'
			i++
		}
		a, end, f := readAmount(t, i, neg)
		if f != fine {
			return f
		}
		if end == len(t) || t[end] == '-' || t[end] == ':' || t[end] == 'T' && !inTime {
			return s.isoAlternative(t, start, inTime)
		}
		if a.frac != 0 { // here PostgreSQL takes the fraction from a double
			x, err := strconv.ParseFloat(str(t[i:end]), 64)
			if err != nil {
				return badFormat
			}
			a.frac = x - math.Trunc(x)
			if neg {
				a.frac = -a.frac
			}
		}
		var u unit
		switch c := t[end]; {
		case c == 'Y' && !inTime:
			u.months = 12
		case c == 'M' && !inTime:
			u.months = 1
		case c == 'W' && !inTime:
			u.days = 7
		case c == 'D' && !inTime:
			u.days = 1
		case c == 'H' && inTime:
			u.micros = microsPerHour
		case c == 'M' && inTime:
			u.micros = microsPerMinute
		case c == 'S' && inTime:
			u.micros = microsPerSecond
		default:
			return badFormat
		}
		s.add(a.n, a.frac, u)
		parts++
		i = end + 1
	}
	if parts == 0 && !inTime {
		return badFormat
	}
	return fine
}

// isoAlternative reads the parts from i on by their place: years-months-daysThours:minutes:seconds, or without separators
// (yyyymmdd, hhmmss).
func (s *spanSum) isoAlternative(t []byte, i int, inTime bool) fault {
	dates := [...]unit{{months: 12}, {months: 1}, {days: 1}}
	clocks := [...]unit{{micros: microsPerHour}, {micros: microsPerMinute}, {micros: microsPerSecond}}
	place := 0
	for i < len(t) {
		if t[i] == 'T' && !inTime {
			inTime, place = true, 0
			i++
			continue
		}
		neg := false
		if t[i] == '-' && place == 0 || t[i] == '+' && place == 0 {
			neg = t[i] == '-'
			i++
		}
		j := digitsEnd(t, i)
		if place == 0 && (j == len(t) || t[j] == 'T') && !inTime && j-i == 8 {
			s.add(int64(atoi(t[i:i+4])), 0, dates[0])
			s.add(int64(atoi(t[i+4:i+6])), 0, dates[1])
			s.add(int64(atoi(t[i+6:j])), 0, dates[2])
			i, place = j, 3
			continue
		}
		if place == 0 && inTime && j-i == 6 {
			s.add(int64(atoi(t[i:i+2])), 0, clocks[0])
			s.add(int64(atoi(t[i+2:i+4])), 0, clocks[1])
			a, end, f := readAmount(t, i+4, neg)
			if f != fine {
				return f
			}
			s.add(a.n, a.frac, clocks[2])
			i, place = end, 3
			continue
		}
		if place >= 3 {
			return badFormat
		}
		a, end, f := readAmount(t, i, neg)
		if f != fine {
			return f
		}
		if inTime {
			s.add(a.n, a.frac, clocks[place])
		} else {
			s.add(a.n, a.frac, dates[place])
		}
		place++
		i = end
		if i < len(t) && (t[i] == '-' && !inTime || t[i] == ':' && inTime) {
			i++
			if i == len(t) {
				return badFormat
			}
		} else if i < len(t) && t[i] != 'T' {
			return badFormat
		}
	}
	return fine
}
