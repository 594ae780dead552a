package pgtype

import (
	"math"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// fault is what is wrong with the text of a date or time.
type fault uint8

const (
	fine          fault = iota
	badFormat           // 22007
	badField            // 22008: a field is out of range
	badMonthDay         // 22008: and perhaps day and month are meant the other way round
	badOffset           // 22009: zone displacement
	badZone             // 22023: unknown zone
	badRange            // 22008: the value as a whole is
	badIntervalOF       // 22015
)

func (f fault) error(typ string, text []byte, zone string) error {
	switch f {
	case badField, badMonthDay:
		e := pgerr.Newf(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", shown(text))
		if f == badMonthDay {
			e = e.WithHint("Perhaps you need a different \"datestyle\" setting.")
		}
		return e
	case badOffset:
		return pgerr.Newf(pgerr.InvalidTimeZoneDisplacementValue, "time zone displacement out of range: \"%s\"", shown(text))
	case badZone:
		return pgerr.Newf(pgerr.InvalidParameterValue, "time zone \"%s\" not recognized", zone)
	case badRange:
		if typ == "timestamp with time zone" {
			typ = "timestamp"
		}
		return pgerr.Newf(pgerr.DatetimeFieldOverflow, "%s out of range: \"%s\"", typ, shown(text))
	case badIntervalOF:
		return pgerr.Newf(pgerr.IntervalFieldOverflow, "interval field value out of range: \"%s\"", shown(text))
	}
	return pgerr.Newf(pgerr.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", typ, shown(text))
}

type special uint8

const (
	isDate special = iota
	isNow
	isToday
	isTomorrow
	isYesterday
	isEpoch
	isInfinity
	isNegInfinity
)

// maxDateText bounds the text of a date or time.
const maxDateText = 255

// moment is what the text of a date or time says.
type moment struct {
	year, month, day          int
	hasYear, hasMonth, hasDay bool
	monthWord                 bool // the month came as a name
	yearTwo                   bool // the year has two digits
	dayOfYear                 bool // day is the day of the year
	julian                    bool
	days                      int32 // of a Julian day
	hasTime                   bool
	hour, minute, second      int
	fraction                  int64 // microseconds
	am, pm, bc                bool
	hasZone                   bool
	offset                    int            // seconds east, when zone is nil
	zone                      *time.Location // a named one
	zoneName                  string         // the name that is not known
	special                   special
	timeNext                  bool // a T was read: a time must follow
	onlyTime                  bool // numbers are times
}

var months = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

var longMonths = [...]string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

var weekdays = map[string]bool{
	"sun": true, "mon": true, "tue": true, "wed": true, "thu": true, "fri": true, "sat": true, "sunday": true, "monday": true,
	"tuesday": true, "wednesday": true, "thursday": true, "friday": true, "saturday": true, "tues": true, "wednes": true, "weds": true,
	"thur": true, "thurs": true,
}

func monthOf(word []byte) int {
	if string(word) == "sept" {
		return 9
	}
	for i := range months {
		if string(word) == months[i] || string(word) == longMonths[i] {
			return i + 1
		}
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// digitsEnd is the end of the digits that start at i.
func digitsEnd(s []byte, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// read takes the text apart.
func (m *moment) read(text []byte) fault {
	s := trim(text)
	if len(s) == 0 || len(s) > maxDateText {
		return badFormat
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case isSpace(c):
			i++
		case isDigit(c):
			j := digitsEnd(s, i)
			switch {
			case j < len(s) && s[j] == ':':
				for j < len(s) && (isDigit(s[j]) || s[j] == ':' || s[j] == '.') {
					j++
				}
				if f := m.clock(s[i:j]); f != fine {
					return f
				}
			case j < len(s) && (s[j] == '-' || s[j] == '/' || s[j] == '.') && !m.timeNext && !m.hasAllDate() && !(m.onlyTime && j-i == 6):
				end, f := m.date(s, i, j)
				if f != fine {
					return f
				}
				j = end
			default:
				frac := []byte(nil)
				if j < len(s) && s[j] == '.' {
					k := digitsEnd(s, j+1)
					frac = s[j:k]
					if f := m.number(s[i:j], frac); f != fine {
						return f
					}
					j = k
					break
				}
				if f := m.number(s[i:j], nil); f != fine {
					return f
				}
			}
			i = j
		case isAlpha(c):
			end, f := m.word(s, i)
			if f != fine {
				return f
			}
			i = end
		case c == '+' || c == '-':
			if i+1 < len(s) && isDigit(s[i+1]) {
				j := i + 1
				for j < len(s) && (isDigit(s[j]) || s[j] == ':') {
					j++
				}
				off, ok := zoneOffset(s[i:j])
				if !ok {
					return badOffset
				}
				if !m.hasTime && !m.hasAllDate() {
					return badFormat
				}
				if m.hasZone {
					// UTC+2 is POSIX's way: west is positive.
					if m.zone == nil || !isAlpha(s[i-1]) {
						return badFormat
					}
					off = -off
				}
				m.hasZone, m.offset, m.zone = true, off, nil
				i = j
				break
			}
			j := i + 1
			for j < len(s) && isSpace(s[j]) {
				j++
			}
			k := j
			for k < len(s) && isAlpha(s[k]) {
				k++
			}
			w := lowered(s[j:k])
			if k == j || c == '+' || w != "infinity" && w != "inf" || m.special != isDate {
				return badFormat
			}
			m.special = isNegInfinity
			i = k
		case c < 0x80 && c > ' ' && c != 0x7f: // other punctuation only separates
			i++
		default:
			return badFormat
		}
	}
	if m.timeNext {
		return badFormat
	}
	return fine
}

func (m *moment) hasAllDate() bool { return m.julian || m.hasYear && m.hasMonth && m.hasDay }

// lowered is a short word in lower case; longer ones are no word of ours.
func lowered(w []byte) string {
	if len(w) > 64 {
		return ""
	}
	var buf [64]byte
	for i, c := range w {
		buf[i] = lower(c)
	}
	return string(buf[:len(w)])
}

// word reads a word at i and returns its end.
func (m *moment) word(s []byte, i int) (int, fault) {
	j := i
	for j < len(s) && isAlpha(s[j]) {
		j++
	}
	w := lowered(s[i:j])
	if (w == "t") && j < len(s) && isDigit(s[j]) {
		m.timeNext = true
		return j, fine
	}
	if w == "j" && j < len(s) && isDigit(s[j]) {
		k := digitsEnd(s, j)
		if k-j > 8 || m.hasAllDate() {
			return j, badFormat
		}
		m.julian = true
		m.days = int32(int64(atoi(s[j:k])) - 2440588)
		return k, fine
	}
	if mon := monthOf([]byte(w)); mon != 0 {
		if j+1 < len(s) && (s[j] == '-' || s[j] == '/' || s[j] == '.') && isDigit(s[j+1]) && !m.hasMonth {
			return m.date(s, i, j)
		}
		// A number that came before and looked like the month is the day.
		if m.hasMonth && !m.monthWord && !m.hasDay && m.month >= 1 && m.month <= 31 {
			m.day, m.hasDay = m.month, true
		} else if m.hasMonth {
			return j, badFormat
		}
		m.month, m.hasMonth, m.monthWord = mon, true, true
		return j, fine
	}
	if j < len(s) && (s[j] == '/' || s[j] == '_') || j < len(s)-1 && (s[j] == '-' || s[j] == '+') && isAlpha(s[i]) && j-i >= 3 && lookupZone(string(s[i:zoneEnd(s, j)])) != nil {
		k := zoneEnd(s, j)
		return k, m.named(string(s[i:k]))
	}
	if j < len(s) && isDigit(s[j]) { // EST5EDT
		k := zoneEnd(s, j)
		if lookupZone(string(s[i:k])) != nil {
			return k, m.named(string(s[i:k]))
		}
	}
	switch w {
	case "ad", "bc":
		m.bc = w == "bc"
	case "am":
		m.am = true
	case "pm":
		m.pm = true
	case "at", "on", "dst", "d", "t":
	case "now":
		m.special = isNow
	case "today":
		m.special = isToday
	case "tomorrow":
		m.special = isTomorrow
	case "yesterday":
		m.special = isYesterday
	case "epoch":
		m.special = isEpoch
	case "infinity", "inf":
		m.special = isInfinity
	case "allballs":
		m.hasTime, m.hasZone = true, true
	default:
		if weekdays[w] {
			return j, fine
		}
		return j, m.named(string(s[i:j]))
	}
	return j, fine
}

func zoneEnd(s []byte, j int) int {
	for j < len(s) && (isAlpha(s[j]) || isDigit(s[j]) || s[j] == '/' || s[j] == '_' || s[j] == '-' || s[j] == '+') {
		j++
	}
	return j
}

// named takes a zone's name or abbreviation.
func (m *moment) named(name string) fault {
	z := lookupZone(name)
	if z == nil {
		for i := range len(name) {
			if name[i] == '/' {
				m.zoneName = lowered([]byte(name))
				return badZone
			}
		}
		return badFormat
	}
	if m.hasZone {
		return badFormat
	}
	m.hasZone, m.zone = true, z
	return fine
}

// clock reads hh:mm, hh:mm:ss, hh:mm:ss.f or mm:ss.f.
func (m *moment) clock(s []byte) fault {
	if m.hasTime {
		return badFormat
	}
	h, mi, sec, frac, f := splitClock(s)
	if f != fine {
		return f
	}
	if h > math.MaxInt32 {
		return badField
	}
	m.hour, m.minute, m.second, m.fraction = int(h), mi, sec, frac
	m.hasTime, m.timeNext = true, false
	return fine
}

// splitClock reads a time of day, or one of an interval, whose hours may be many.
func splitClock(s []byte) (hour int64, minute, second int, fraction int64, f fault) {
	j := digitsEnd(s, 0)
	if j == 0 || j > 12 || j >= len(s) || s[j] != ':' {
		return 0, 0, 0, 0, badFormat
	}
	for _, c := range s[:j] {
		hour = hour*10 + int64(c-'0')
	}
	k := digitsEnd(s, j+1)
	if k-j-1 > 9 {
		return 0, 0, 0, 0, badField
	}
	minute = atoi(s[j+1 : k])
	switch {
	case k == len(s):
	case s[k] == '.':
		// mm:ss.f
		if hour > 1<<30 {
			return 0, 0, 0, 0, badField
		}
		minute, second, hour = int(hour), minute, 0
		if fraction, f = fractionMicros(s[k:]); f != fine {
			return 0, 0, 0, 0, f
		}
	default:
		l := digitsEnd(s, k+1)
		if l-k-1 > 9 {
			return 0, 0, 0, 0, badField
		}
		second = atoi(s[k+1 : l])
		if l < len(s) {
			if s[l] != '.' {
				return 0, 0, 0, 0, badFormat
			}
			if fraction, f = fractionMicros(s[l:]); f != fine {
				return 0, 0, 0, 0, f
			}
		}
	}
	if minute > 59 || second > 60 {
		return 0, 0, 0, 0, badField
	}
	return hour, minute, second, fraction, fine
}

// fractionMicros reads ".123" as microseconds, rounded.
func fractionMicros(s []byte) (int64, fault) {
	var us int64
	n := 0
	for i, c := range s[1:] {
		if !isDigit(c) {
			return 0, badFormat
		}
		switch {
		case i < 6:
			us = us*10 + int64(c-'0')
			n++
		case i == 6:
			// Half and more is up; exactly half is to even, as rint has it.
			if c > '5' || c == '5' && (us%2 == 1 || anyDigit(s[8:])) {
				us++
			}
		}
	}
	for ; n < 6; n++ {
		us *= 10
	}
	return us, fine
}

func anyDigit(s []byte) bool {
	for _, c := range s {
		if c != '0' {
			return true
		}
	}
	return false
}

// date reads a date whose parts are separated by s[j]; the first number is s[i:j].
func (m *moment) date(s []byte, i, j int) (int, fault) {
	sep := s[j]
	if m.hasTime && isDigit(s[i]) { // PostgreSQL takes it for a zone and refuses it
		return i, badFormat
	}
	var parts [3][]byte
	parts[0] = s[i:j]
	n := 1
	end := j
	for n < 3 && end < len(s) && s[end] == sep {
		k := end + 1
		start := k
		if k < len(s) && isAlpha(s[k]) {
			for k < len(s) && isAlpha(s[k]) {
				k++
			}
		} else {
			k = digitsEnd(s, k)
		}
		if k == start {
			return end, badFormat
		}
		parts[n] = s[start:k]
		n++
		end = k
	}
	if n == 3 && end < len(s) && s[end] == sep {
		return end, badFormat
	}
	if n == 2 && sep == '.' {
		if len(parts[0]) >= 4 && len(parts[1]) == 3 && isDigit(parts[1][0]) { // year and day of the year
			if m.hasYear || m.hasMonth || m.hasDay {
				return end, badFormat
			}
			m.year, m.month, m.day = atoi(parts[0][:min(len(parts[0]), 9)]), 1, atoi(parts[1])
			m.hasYear, m.hasMonth, m.hasDay, m.dayOfYear = true, true, true, true
			if m.day < 1 || m.day > 366 {
				return end, badField
			}
			return end, fine
		}
		return end, m.number(parts[0], append([]byte{'.'}, parts[1]...))
	}
	if n < 3 {
		if n == 2 && isAlpha(parts[1][0]) && monthOf([]byte(lowered(parts[1]))) == 0 {
			return end, badFormat
		}
		if n == 2 && !m.monthWord {
			return end, badFormat
		}
	}
	// A month's name first: the others keep their order.
	for _, p := range parts[:n] {
		if isAlpha(p[0]) {
			mon := monthOf([]byte(lowered(p)))
			if mon == 0 || m.hasMonth {
				return end, badFormat
			}
			m.month, m.hasMonth, m.monthWord = mon, true, true
		}
	}
	for _, p := range parts[:n] {
		if !isAlpha(p[0]) {
			if f := m.dateNumber(p); f != fine {
				return end, f
			}
		}
	}
	return end, fine
}

// number reads a number that stands alone, with a fraction (a point and digits) or nil.
func (m *moment) number(s, frac []byte) fault {
	if len(s) > 11 {
		return badField
	}
	if m.timeNext || !m.hasTime && (m.hasAllDate() || m.onlyTime) && (len(s) == 6 || len(s) == 4) {
		if m.hasTime {
			return badFormat
		}
		switch len(s) {
		case 6:
			m.second = atoi(s[4:])
			fallthrough
		case 4:
			m.minute = atoi(s[2:4])
			m.hour = atoi(s[:2])
		case 2:
			if frac != nil {
				return badFormat
			}
			m.hour = atoi(s)
		default:
			return badFormat
		}
		if frac != nil {
			var f fault
			if m.fraction, f = fractionMicros(frac); f != fine {
				return f
			}
		}
		if m.minute > 59 || m.second > 60 {
			return badField
		}
		m.hasTime, m.timeNext = true, false
		return fine
	}
	if frac != nil {
		return badFormat
	}
	none := !m.hasYear && !m.hasMonth && !m.hasDay && !m.julian
	switch {
	case none && len(s) >= 6: // year, month and day run together
		y := len(s) - 4
		m.year, m.month, m.day = atoi(s[:y]), atoi(s[y:y+2]), atoi(s[y+2:])
		m.hasYear, m.hasMonth, m.hasDay, m.yearTwo = true, true, true, y == 2
		return fine
	}
	return m.dateNumber(s)
}

// dateNumber takes one number of a date: which part it is depends on what is known and on its length; the order of two short ones is
// month, day.
func (m *moment) dateNumber(s []byte) fault {
	if len(s) > 9 {
		return badField
	}
	n := atoi(s)
	year := func() fault {
		m.year, m.hasYear, m.yearTwo = n, true, len(s) <= 2
		return fine
	}
	day := func() fault {
		m.day, m.hasDay = n, true
		return fine
	}
	switch {
	case m.julian:
		return badFormat
	case !m.hasYear && !m.hasMonth && !m.hasDay:
		if len(s) >= 3 {
			return year()
		}
		m.month, m.hasMonth = n, true
		return fine
	case m.hasYear && !m.hasMonth && !m.hasDay:
		m.month, m.hasMonth = n, true
		return fine
	case m.hasMonth && !m.hasYear && !m.hasDay:
		if m.monthWord && len(s) >= 3 {
			return year()
		}
		return day()
	case m.hasYear && m.hasMonth && !m.hasDay:
		if m.monthWord && len(s) >= 3 && m.yearTwo {
			// "9 Jan 2024" with the day taken as the year.
			m.day, m.hasDay = m.year, true
			return year()
		}
		return day()
	case m.hasMonth && m.hasDay && !m.hasYear:
		return year()
	}
	return badFormat
}

// check validates the date and finds its days; the time must be there or not as it is.
func (m *moment) check() (days int64, f fault) {
	if m.julian {
		return int64(m.days), fine
	}
	if !m.hasYear || !m.hasMonth || !m.hasDay {
		return 0, badFormat
	}
	y := m.year
	switch {
	case m.bc:
		if y <= 0 {
			return 0, badField
		}
		y = 1 - y
	case m.yearTwo && y < 70:
		y += 2000
	case m.yearTwo && y < 100:
		y += 1900
	case y == 0:
		return 0, badField
	}
	if !m.dayOfYear { // day 366 of a short year is the first of the next one, as in PostgreSQL
		if m.month < 1 || m.month > 12 || m.day < 1 || m.day > 31 {
			return 0, badMonthDay
		}
		if m.day > MonthDays(y, m.month) {
			return 0, badField
		}
	}
	if y < -4713 || y > 5874897 {
		return 0, badRange
	}
	return int64(Days(y, m.month, m.day)), fine
}

// clockMicros is the time of day in microseconds; 24:00:00 is allowed.
func (m *moment) clockMicros() (int64, fault) {
	h := m.hour
	if m.am || m.pm {
		switch {
		case h > 12:
			return 0, badField
		case m.pm && h != 12:
			h += 12
		case m.am && h == 12:
			h = 0
		}
	}
	us := int64(h)*microsPerHour + int64(m.minute)*microsPerMinute + int64(m.second)*microsPerSecond + m.fraction
	if h > 24 || us > microsPerDay {
		return 0, badField
	}
	return us, fine
}

// local is the special value, or date and time, as a local timestamp; zoned is true when it is an instant already.
func (m *moment) local(ctx *Context) (us int64, zoned bool, f fault) {
	switch m.special {
	case isNow, isToday, isTomorrow, isYesterday:
		if ctx.timeless {
			return 0, false, badFormat
		}
	}
	switch m.special {
	case isInfinity, isNegInfinity:
		if m.hasYear || m.hasMonth || m.hasDay || m.hasTime || m.julian {
			return 0, false, badFormat
		}
		if m.special == isInfinity {
			return column.TimestampInfinity, true, fine
		}
		return column.TimestampNegInfinity, true, fine
	case isNow:
		return ctx.Now, true, fine
	case isEpoch:
		return 0, true, fine
	}
	var days int64
	switch m.special {
	case isToday, isTomorrow, isYesterday:
		d, _ := SplitMicros(ToLocal(ctx.Now, ctx.Zone))
		days = int64(d)
		if m.special == isTomorrow {
			days++
		} else if m.special == isYesterday {
			days--
		}
	default:
		if days, f = m.check(); f != fine {
			return 0, false, f
		}
	}
	micros, f := m.clockMicros()
	if f != fine {
		return 0, false, f
	}
	if days < minDay-1 || days > maxMicros/microsPerDay {
		return 0, false, badRange
	}
	if days == maxMicros/microsPerDay && micros > maxMicros%microsPerDay {
		return 0, false, badRange
	}
	return days*microsPerDay + micros, false, fine
}

// ParseTimestamp reads a timestamp without time zone: microseconds since 1970-01-01 00:00, or an infinity. A zone in the text is ignored.
func ParseTimestamp(text []byte, ctx *Context) (int64, error) {
	if us, ok := fastTimestamp(text); ok {
		return us, nil
	}
	var m moment
	const typ = "timestamp"
	if f := m.read(text); f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	us, zoned, f := m.local(ctx)
	if f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	if m.special == isNow {
		us = ToLocal(us, ctx.Zone)
	}
	if !zoned && !TimestampInRange(us) {
		return 0, badRange.error(typ, text, "")
	}
	return us, nil
}

// ParseTimestamptz reads an instant: microseconds since the Unix epoch, or an infinity. Text without a zone is in ctx.Zone.
func ParseTimestamptz(text []byte, ctx *Context) (int64, error) {
	const typ = "timestamp with time zone"
	if n := len(text); n > 19 && text[n-1] == 'Z' {
		if us, ok := fastTimestamp(text[:n-1]); ok {
			return us, nil
		}
	}
	if us, ok := fastTimestamp(text); ok && (ctx.Zone == nil || ctx.Zone == time.UTC) {
		return us, nil
	}
	var m moment
	if f := m.read(text); f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	us, zoned, f := m.local(ctx)
	if f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	if zoned {
		return us, nil
	}
	switch {
	case m.hasZone && m.zone == nil:
		us -= int64(m.offset) * microsPerSecond
	case m.hasZone:
		us = ToUTC(us, m.zone)
	default:
		us = ToUTC(us, ctx.Zone)
	}
	if !TimestampInRange(us) {
		return 0, badRange.error(typ, text, "")
	}
	return us, nil
}

// ParseDate reads a date: days since 1970-01-01, or an infinity. A time in the text is ignored.
func ParseDate(text []byte, ctx *Context) (int32, error) {
	const typ = "date"
	if days, ok := fastDate(text); ok {
		return days, nil
	}
	var m moment
	if f := m.read(text); f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	switch m.special {
	case isDate:
	case isInfinity, isNegInfinity, isNow, isEpoch, isToday, isTomorrow, isYesterday:
		us, _, f := m.local(ctx)
		if f != fine {
			return 0, f.error(typ, text, m.zoneName)
		}
		switch m.special {
		case isInfinity:
			return column.DateInfinity, nil
		case isNegInfinity:
			return column.DateNegInfinity, nil
		case isNow:
			us = ToLocal(us, ctx.Zone)
		}
		d, _ := SplitMicros(us)
		return d, nil
	}
	days, f := m.check()
	if f == fine && !DateInRange(days) {
		f = badRange
	}
	if f == fine && m.hasTime {
		_, f = m.clockMicros()
	}
	if f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	return int32(days), nil
}

// ParseTime reads a time of day: microseconds since midnight, 24:00:00 included. A date in the text is ignored.
func ParseTime(text []byte, ctx *Context) (int64, error) {
	const typ = "time"
	m := moment{onlyTime: true}
	f := m.read(text)
	if f == fine && m.special == isNow {
		_, us := SplitMicros(ToLocal(ctx.Now, ctx.Zone))
		return us, nil
	}
	if f == fine && (!m.hasTime || m.special != isDate) {
		f = badFormat
	}
	if f == fine && (m.hasYear || m.hasMonth || m.hasDay) {
		_, f = m.check()
	}
	var us int64
	if f == fine {
		us, f = m.clockMicros()
	}
	if f != fine {
		return 0, f.error(typ, text, m.zoneName)
	}
	return us, nil
}

// fastDate reads yyyy-mm-dd.
func fastDate(s []byte) (int32, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	for i, c := range s {
		if i != 4 && i != 7 && !isDigit(c) {
			return 0, false
		}
	}
	y, m, d := atoi(s[:4]), atoi(s[5:7]), atoi(s[8:])
	if y == 0 || m < 1 || m > 12 || d < 1 || d > MonthDays(y, m) {
		return 0, false
	}
	return Days(y, m, d), true
}

// fastTimestamp reads yyyy-mm-dd hh:mm:ss with a space or T between and up to 6 digits of a fraction.
func fastTimestamp(s []byte) (int64, bool) {
	if len(s) < 19 || s[10] != ' ' && s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	days, ok := fastDate(s[:10])
	if !ok {
		return 0, false
	}
	for _, i := range [...]int{11, 12, 14, 15, 17, 18} {
		if !isDigit(s[i]) {
			return 0, false
		}
	}
	h, mi, sec := atoi(s[11:13]), atoi(s[14:16]), atoi(s[17:19])
	if h > 23 || mi > 59 || sec > 59 {
		return 0, false
	}
	us := int64(days)*microsPerDay + int64(h)*microsPerHour + int64(mi)*microsPerMinute + int64(sec)*microsPerSecond
	if len(s) == 19 {
		return us, true
	}
	if s[19] != '.' || len(s) == 20 || len(s) > 26 {
		return 0, false
	}
	f, bad := fractionMicros(s[19:])
	return us + f, bad == fine
}
