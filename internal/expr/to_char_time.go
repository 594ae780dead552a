package expr

import (
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// timeToText are to_char of times and intervals.
var timeToText = []Overload{
	{Name: "to_char", Args: []column.Type{tTimestamp, tText}, Result: tText, Make: makeToChar},
	{Name: "to_char", Args: []column.Type{tTimestamptz, tText}, Result: tText, Volatility: Zoned, Make: makeToChar},
	{Name: "to_char", Args: []column.Type{tInterval, tText}, Result: tText, Make: makeToChar},
}

// clockTime is a time taken apart for to_char; of intervals the parts may be negative or large.
type clockTime struct {
	year, month, day   int
	hour, min, sec, us int64
	days               int32 // since 1970
	yday               int
	interval           bool
	zone               *time.Location // nil: none
	utc                int64
	offset             int
}

var (
	monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	romans     = [...]string{"I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"}

	errIntervalFormat = pgerr.New(pgerr.InvalidDatetimeFormat, "invalid format specification for an interval value").
				WithHint("Intervals are not tied to specific calendar dates.")
)

func makeToChar(s *Site) (Kernel, error) {
	kind := s.Args[0].Kind
	var ts templates
	return func(c *Call) {
		f, w := c.Texts(1), c.Text()
		zone := c.zoneOf(kind)
		daily := kind == column.Timestamp && c.Const[1] && len(f.At(0)) > 0 && ts.of(f.At(0)).daily()
		day, from, to := int32(0), -1, 0 // the text of a day that was just made, in w.Buf
		for _, row := range c.Rows() {
			format := f.At(row)
			var ct clockTime
			if kind == column.IntervalKind {
				iv := c.Intervals(0).At(row)
				us := iv.Micros
				ct = clockTime{
					year: int(iv.Months / 12), month: int(iv.Months % 12), day: int(iv.Days), hour: us / 3_600_000_000, min: us / 60_000_000 % 60,
					sec: us / 1_000_000 % 60, us: us % 1_000_000, interval: true, yday: int(iv.Months)*30 + int(iv.Days),
				}
			} else {
				us := c.Int64s(0).At(row)
				if infinite(us) {
					c.Null(row)
					continue
				}
				ct.utc = us
				if kind == column.Timestamptz {
					ct.zone, ct.offset = zone, pgtype.OffsetAt(zone, us)
					us += int64(ct.offset) * 1_000_000
				}
				var tod int64
				ct.days, tod = pgtype.SplitMicros(us)
				if from >= 0 && ct.days == day { // rows mostly come day by day
					at := len(w.Buf)
					w.Buf = append(w.Buf, w.Buf[from:to]...)
					from, to = at, len(w.Buf)
					w.End(row)
					continue
				}
				ct.year, ct.month, ct.day = pgtype.Civil(ct.days)
				ct.yday = int(ct.days-pgtype.Days(ct.year, 1, 1)) + 1
				ct.hour, ct.min, ct.sec, ct.us = tod/3_600_000_000, tod/60_000_000%60, tod/1_000_000%60, tod%1_000_000
			}
			if len(format) == 0 {
				c.Null(row)
				continue
			}
			at := len(w.Buf)
			buf, err := ct.append(w.Buf, ts.of(format))
			w.Buf = buf
			if err != nil {
				w.Drop()
				c.Fail(row, err)
				continue
			}
			if daily {
				day, from, to = ct.days, at, len(buf)
			}
			w.End(row)
		}
	}, nil
}

// dailyFields are those that are the same all day.
var dailyFields = map[string]bool{
	"YYYY": true, "YYY": true, "YY": true, "Y": true, "Y,YYY": true, "IYYY": true, "IYY": true, "IY": true, "I": true, "CC": true, "Q": true, "MM": true,
	"MON": true, "MONTH": true, "RM": true, "WW": true, "W": true, "IW": true, "DDD": true, "IDDD": true, "DD": true, "D": true, "ID": true, "DY": true, "DAY": true, "J": true,
}

// daily says that the text is the same for all times of a day.
func (t template) daily() bool {
	for i := range t {
		if t[i].field != "" && !dailyFields[t[i].name] {
			return false
		}
	}
	return true
}

// appendPadded appends a number with zeros up to a width, of which a minus takes one more.
func appendPadded(dst []byte, x int64, width int) []byte {
	if x < 0 {
		dst = append(dst, '-')
		x = -x
	}
	var b [20]byte
	d := strconv.AppendInt(b[:0], x, 10)
	for k := len(d); k < width; k++ {
		dst = append(dst, '0')
	}
	return append(dst, d...)
}

// appendOrdinal appends st, nd, rd or th for the number that starts at start.
func appendOrdinal(dst []byte, start int, upper bool) []byte {
	d := dst[start:]
	suffix := "th"
	if n := len(d); n > 0 && (n < 2 || d[n-2] != '1') {
		switch d[n-1] {
		case '1':
			suffix = "st"
		case '2':
			suffix = "nd"
		case '3':
			suffix = "rd"
		}
	}
	if upper {
		suffix = strings.ToUpper(suffix)
	}
	return append(dst, suffix...)
}

// appendName appends a name in the case of its field, padded to width.
func appendName(dst []byte, name string, n *templateNode, width int) []byte {
	switch {
	case n.field[0] >= 'a':
		name = strings.ToLower(name)
	case n.field[1] < 'a':
		name = strings.ToUpper(name)
	}
	dst = append(dst, name...)
	if !n.fm && !n.tm {
		dst = appendSpaces(dst, width-len(name))
	}
	return dst
}

func (ct *clockTime) shownYear() int64 {
	if ct.interval || ct.year > 0 {
		return int64(ct.year)
	}
	return int64(1 - ct.year)
}

func (ct *clockTime) append(dst []byte, t template) ([]byte, *pgerr.Error) {
	for i := range t {
		n := &t[i]
		if n.field == "" {
			dst = append(dst, n.text...)
			continue
		}
		start := len(dst)
		num := func(x int64, width int) {
			if n.fm {
				width = 0
			}
			dst = appendPadded(dst, x, width)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		}
		// total counts a minus, num does not.
		total := func(x int64, width int) {
			if x < 0 {
				width--
			}
			num(x, width)
		}
		field := n.name
		if ct.interval {
			switch field {
			case "A.D.", "AD", "B.C.", "BC", "DAY", "DY", "D", "ID", "IDDD", "IW", "TZ", "TZH", "TZM", "OF", "WW":
				if field != "WW" {
					return dst, errIntervalFormat
				}
			case "IYYY", "IYY", "IY", "I":
				return dst, errIntervalFormat
			}
		}
		switch field {
		case "A.M.", "P.M.", "AM", "PM":
			word := "am"
			if h := ct.hour % 24; h >= 12 {
				word = "pm"
			}
			if strings.Contains(field, ".") {
				word = word[:1] + "." + word[1:] + "."
			}
			if n.field[0] < 'a' {
				word = strings.ToUpper(word)
			}
			dst = append(dst, word...)
		case "HH", "HH12":
			h := ct.hour % 12
			if h == 0 {
				h = 12
			}
			width := 2
			if ct.hour < 0 {
				width = 3
			}
			total(h, width)
		case "HH24":
			num(ct.hour, 2)
		case "MI":
			num(ct.min, 2)
		case "SS":
			num(ct.sec, 2)
		case "MS":
			dst = appendPadded(dst, ct.us/1000, 3)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		case "US":
			dst = appendPadded(dst, ct.us, 6)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		case "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
			digits := int(field[2] - '0')
			x := ct.us
			for range 6 - digits {
				x /= 10
			}
			dst = appendPadded(dst, x, digits)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		case "SSSS", "SSSSS":
			dst = strconv.AppendInt(dst, ct.hour*3600+ct.min*60+ct.sec, 10)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		case "TZ":
			if ct.zone != nil {
				name, _ := time.UnixMicro(ct.utc).In(ct.zone).Zone()
				if n.field == "tz" {
					name = strings.ToLower(name)
				}
				dst = append(dst, name...)
			}
		case "TZH", "TZM", "OF":
			sign, off := byte('+'), ct.offset
			if off < 0 {
				sign, off = '-', -off
			}
			switch field {
			case "TZH":
				dst = appendPadded(append(dst, sign), int64(off/3600), 2)
			case "TZM":
				dst = appendPadded(dst, int64(off/60%60), 2)
			default:
				width := 2
				if n.fm {
					width = 0
				}
				dst = appendPadded(append(dst, sign), int64(off/3600), width)
				if m := off / 60 % 60; m != 0 {
					dst = appendPadded(append(dst, ':'), int64(m), 2)
				}
			}
		case "A.D.", "AD", "B.C.", "BC":
			word := "ad"
			if ct.year <= 0 {
				word = "bc"
			}
			if strings.Contains(field, ".") {
				word = word[:1] + "." + word[1:] + "."
			}
			if n.field[0] < 'a' {
				word = strings.ToUpper(word)
			}
			dst = append(dst, word...)
		case "MONTH":
			if m := ct.month; m != 0 {
				if ct.interval {
					return dst, errIntervalFormat
				}
				dst = appendName(dst, monthNames[m-1], n, 9)
			} else if ct.interval {
				return dst, errIntervalFormat
			}
		case "MON":
			if ct.interval {
				return dst, errIntervalFormat
			}
			dst = appendName(dst, monthNames[ct.month-1][:3], n, 0)
		case "MM":
			num(int64(ct.month), 2)
		case "DAY":
			dst = appendName(dst, dayNames[isoDow(ct.days)%7], n, 9)
		case "DY":
			dst = appendName(dst, dayNames[isoDow(ct.days)%7][:3], n, 0)
		case "DDD":
			total(int64(ct.yday), 3)
		case "IDDD":
			y, _ := isoWeek(ct.days)
			num(int64(ct.days-firstISODay(y))+1, 3)
		case "DD":
			total(int64(ct.day), 2)
		case "D":
			num(int64(isoDow(ct.days)%7+1), 1)
		case "ID":
			num(int64(isoDow(ct.days)), 1)
		case "WW":
			total(int64((ct.yday-1)/7+1), 2)
		case "IW":
			_, w := isoWeek(ct.days)
			num(int64(w), 2)
		case "W":
			total(int64((ct.day-1)/7+1), 1)
		case "Q":
			if ct.month != 0 {
				num(int64((ct.month-1)/3+1), 1)
			}
		case "CC":
			y := int64(ct.year)
			switch {
			case ct.interval:
				y /= 100
			case y > 0:
				y = (y-1)/100 + 1
			default:
				y = y/100 - 1
			}
			num(y, 2)
		case "Y,YYY":
			y := ct.shownYear()
			dst = strconv.AppendInt(dst, y/1000, 10)
			width := 3
			if y < 0 {
				width = 2
			}
			dst = appendPadded(append(dst, ','), y%1000, width)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		case "YYYY":
			num(ct.shownYear(), 4)
		case "YYY":
			num(ct.shownYear()%1000, 3)
		case "YY":
			num(ct.shownYear()%100, 2)
		case "Y":
			num(ct.shownYear()%10, 1)
		case "IYYY", "IYY", "IY", "I":
			y, _ := isoWeek(ct.days)
			if y <= 0 {
				y = 1 - y
			}
			mod := [...]int{0, 10, 100, 1000, 1 << 30}[len(field)]
			num(int64(y%mod), len(field))
		case "RM":
			m := ct.month
			if m == 0 && ct.year == 0 {
				break
			}
			switch {
			case m < 0: // counted from the end
				m += 13
			case m == 0 && ct.year > 0:
				m = 12
			case m == 0:
				m = 1
			}
			name := romans[m-1]
			if n.field == "rm" {
				name = strings.ToLower(name)
			}
			dst = append(dst, name...)
			if !n.fm {
				dst = appendSpaces(dst, 4-len(name))
			}
		case "J":
			j := int64(ct.days) + julianEpoch
			if ct.interval {
				j = julianOf(int64(ct.year), int64(ct.month), int64(ct.day))
			}
			dst = strconv.AppendInt(dst, j, 10)
			if n.th {
				dst = appendOrdinal(dst, start, n.upper)
			}
		}
	}
	return dst, nil
}

// firstISODay is the Monday of the first ISO week of a year.
func firstISODay(year int) int32 {
	d := pgtype.Days(year, 1, 4)
	return d - int32(isoDow(d)) + 1
}

// julianOf is PostgreSQL's formula for a Julian day, which also takes months and days that no date has.
func julianOf(year, month, day int64) int64 {
	if month > 2 {
		month++
		year += 4800
	} else {
		month += 13
		year += 4799
	}
	century := year / 100
	return year*365 - 32167 + year/4 - century + century/4 + 7834*month/256 + day
}
