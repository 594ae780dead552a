package expr

import (
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// textToTime are to_timestamp and to_date of text with a format.
var textToTime = []Overload{
	{Name: "to_timestamp", Args: []column.Type{tText, tText}, Result: tTimestamptz, Volatility: Zoned, Make: makeFromChar},
	{Name: "to_date", Args: []column.Type{tText, tText}, Result: tDate, Make: makeFromChar},
}

func makeFromChar(s *Site) (Kernel, error) {
	var ts templates
	r := new(timeReader)
	date := s.Result.Kind == column.Date
	return func(c *Call) {
		a, f, zone := c.Texts(0), c.Texts(1), c.Ctx.zone()
		var t template
		for k, row := range c.Rows() {
			if k == 0 || !c.Const[1] {
				t = ts.of(f.At(row))
			}
			*r = timeReader{text: a.At(row), s: a.At(row)}
			err := r.read(t)
			var days int32
			var us int64
			if err == nil {
				days, us, err = r.result()
			}
			switch {
			case err != nil:
				c.Fail(row, err)
			case date:
				c.Out.I32[row] = days
			default:
				us += int64(days) * usPerDay
				if r.zoned {
					us -= int64(r.offset) * 1_000_000
				} else {
					us = pgtype.ToUTC(us, zone)
				}
				if !pgtype.TimestampInRange(us) {
					c.Fail(row, errTimestampRange)
					continue
				}
				c.Out.I64[row] = us
			}
		}
	}, nil
}

// timeReader reads text by a format, as PostgreSQL does: one character of the text for a separator of the format, or none;
// numbers of at most so many digits.
type timeReader struct {
	text, s []byte
	skipped int // spaces and separators that were passed and are not in the format
	fixed   bool

	hh, mi, ss, ms, us, ssss        timeNumber
	year, cc, mm, dd, ddd, d, ww, w timeNumber
	julian, half, bc, tzh, tzm      timeNumber
	yearDigits                      int
	tzSign                          int
	clock12, iso, gregorian         bool

	zoned  bool
	offset int // seconds east
}

// timeNumber is a field that was read.
type timeNumber struct {
	v   int
	set bool
}

func (r *timeReader) spaces() {
	for len(r.s) > 0 && (isSpaceByte(r.s[0]) || r.s[0] == '\v' || r.s[0] == '\f') {
		r.s = r.s[1:]
		r.skipped++
	}
}

func errTimeValue(value, field string) *pgerr.Error {
	return pgerr.Newf(pgerr.InvalidDatetimeFormat, "invalid value \"%s\" for \"%s\"", value, field)
}

// word is the text up to white space, for messages.
func word(s []byte) string {
	for i, c := range s {
		if isSpaceByte(c) {
			return string(s[:i])
		}
	}
	return string(s)
}

func (x *timeNumber) put(v int, field string) *pgerr.Error {
	if x.set && x.v != v && x.v != 0 {
		return pgerr.Newf(pgerr.InvalidDatetimeFormat, "conflicting values for \"%s\" field in formatting string", field).
			WithDetail("This value contradicts a previous setting for the same field type.")
	}
	x.v, x.set = v, true
	return nil
}

// number reads a field of at most width digits, or of any number when what follows delimits it; n is how many bytes it took.
func (r *timeReader) number(x *timeNumber, width int, t template, i int) (n int, err *pgerr.Error) {
	r.spaces()
	node := &t[i]
	field := node.field
	s := r.s
	open := node.fm || node.th || i+1 == len(t)
	if !open {
		next := &t[i+1]
		if next.field != "" {
			open = !next.digits()
		} else {
			open = !(len(next.text) == 1 && next.text[0] >= '0' && next.text[0] <= '9')
		}
	}
	limit := len(s)
	if !open {
		limit = min(limit, width)
	}
	k, neg := 0, false
	if k < limit && (s[k] == '-' || s[k] == '+') {
		neg = s[k] == '-'
		k++
	}
	v, digits := 0, 0
	over := false
	for ; k < limit && s[k] >= '0' && s[k] <= '9'; k++ {
		digits++
		if v = v*10 + int(s[k]-'0'); v > 1<<31 {
			over, v = true, 1<<31
		}
	}
	if digits == 0 {
		k = 0
	}
	if !open {
		if len(s) < width {
			return 0, pgerr.Newf(pgerr.InvalidDatetimeFormat, "source string too short for \"%s\" formatting field", field).
				WithDetail("Field requires %d characters, but only %d remain.", width, len(s)).
				WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
		}
		if k > 0 && k < width {
			return 0, errTimeValue(string(s[:width]), field).WithDetail("Field requires %d characters, but only %d could be parsed.", width, k).
				WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
		}
	}
	if k == 0 {
		shown := string(s[:min(width, len(s))])
		return 0, errTimeValue(shown, field).WithDetail("Value must be an integer.")
	}
	if neg {
		v = -v
	}
	if over || v > 1<<31-1 {
		return 0, pgerr.Newf(pgerr.DatetimeFieldOverflow, "value for \"%s\" in source string is out of range", field).
			WithDetail("Value must be in the range %d to %d.", -1<<31, 1<<31-1)
	}
	r.s = s[k:]
	return k, x.put(v, field)
}

// oneOf reads one of some words in any case, the first that fits.
func (r *timeReader) oneOf(x *timeNumber, words []string, prefix int, node *templateNode) *pgerr.Error {
	for i, w := range words {
		if prefix > 0 {
			w = w[:min(prefix, len(w))]
		}
		if len(r.s) >= len(w) && strings.EqualFold(string(r.s[:len(w)]), w) {
			r.s = r.s[len(w):]
			return x.put(i, node.field)
		}
	}
	return errTimeValue(word(r.s), node.field).WithDetail("The given value did not match any of the allowed values for this field.")
}

var (
	halves      = []string{"am", "pm"}
	dottedHalf  = []string{"a.m.", "p.m."}
	eras        = []string{"ad", "bc"}
	dottedEra   = []string{"a.d.", "b.c."}
	romanSearch = []string{"XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"}

	errMixedDates = pgerr.New(pgerr.InvalidDatetimeFormat, "invalid combination of date conventions").
			WithHint("Do not mix Gregorian and ISO week date conventions in a formatting template.")
	errDayOfYear = pgerr.New(pgerr.InvalidDatetimeFormat, "cannot calculate day of year without year information")
)

// ordinal passes the letters of TH.
func (r *timeReader) ordinal(n *templateNode) {
	if n.th {
		r.s = r.s[min(2, len(r.s)):]
	}
}

func (r *timeReader) read(t template) *pgerr.Error {
	for i := range t {
		if len(r.s) == 0 {
			return nil
		}
		n := &t[i]
		if !r.fixed && (n.field != "" || i == 0) {
			r.spaces()
		}
		if n.space || n.sep {
			if r.fixed {
				r.s = r.s[charLen(string(r.s[:min(4, len(r.s))])):]
				continue
			}
			r.skipped--
			if len(r.s) > 0 && (isSpaceByte(r.s[0]) || isSeparator(r.s[0])) {
				r.s = r.s[1:]
				r.skipped++
			}
			continue
		}
		if n.field == "" {
			if !r.fixed && r.skipped > 0 {
				r.skipped--
			} else if len(r.s) > 0 {
				r.s = r.s[charLen(string(r.s[:min(4, len(r.s))])):]
			}
			continue
		}
		if err := r.field(t, i); err != nil {
			return err
		}
		if !r.fixed {
			r.skipped = 0
			r.spaces()
		}
	}
	return nil
}

func (r *timeReader) field(t template, i int) *pgerr.Error {
	n := &t[i]
	name := n.name
	switch name {
	case "IYYY", "IYY", "IY", "I", "IDDD", "ID", "IW":
		r.iso = true
	case "DAY", "DY", "D", "DDD", "DD", "MM", "MON", "MONTH", "RM", "WW", "W", "YYYY", "YYY", "YY", "Y", "Y,YYY", "CC", "A.D.", "AD", "B.C.", "BC", "J":
		r.gregorian = name != "DAY" && name != "DY" && name != "J" || r.gregorian
	}
	if r.iso && r.gregorian {
		return errMixedDates
	}
	var err *pgerr.Error
	var k int
	switch name {
	case "FX":
		r.fixed = true
	case "A.M.", "P.M.":
		r.clock12 = true
		return r.oneOf(&r.half, dottedHalf, 0, n)
	case "AM", "PM":
		r.clock12 = true
		return r.oneOf(&r.half, halves, 0, n)
	case "HH", "HH12":
		r.clock12 = true
		_, err = r.number(&r.hh, 2, t, i)
	case "HH24":
		_, err = r.number(&r.hh, 2, t, i)
	case "MI":
		_, err = r.number(&r.mi, 2, t, i)
	case "SS":
		_, err = r.number(&r.ss, 2, t, i)
	case "MS":
		var x timeNumber
		if k, err = r.number(&x, 3, t, i); err == nil {
			switch k {
			case 1:
				x.v *= 100
			case 2:
				x.v *= 10
			}
			err = r.ms.put(x.v, n.field)
		}
	case "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
		width := 6
		if name != "US" {
			width = int(name[2] - '0')
		}
		var x timeNumber
		if k, err = r.number(&x, width, t, i); err == nil {
			for ; k < 6; k++ {
				x.v *= 10
			}
			err = r.us.put(x.v, n.field)
		}
	case "SSSS", "SSSSS":
		_, err = r.number(&r.ssss, len(name), t, i)
	case "TZ", "OF":
		return pgerr.Newf(pgerr.FeatureNotSupported, "formatting field \"%s\" is only supported in to_char", n.field)
	case "TZH":
		sign := 1
		switch {
		case r.s[0] == '+' || r.s[0] == '-' || r.s[0] == ' ':
			if r.s[0] == '-' {
				sign = -1
			}
			r.s = r.s[1:]
		case r.skipped > 0 && len(r.text) > len(r.s) && r.text[len(r.text)-len(r.s)-1] == '-':
			sign = -1 // the minus was taken for a separator
		}
		r.tzSign = sign
		_, err = r.number(&r.tzh, 2, t, i)
	case "TZM":
		if r.tzSign == 0 {
			r.tzSign = 1
		}
		_, err = r.number(&r.tzm, 2, t, i)
	case "A.D.", "B.C.":
		return r.oneOf(&r.bc, dottedEra, 0, n)
	case "AD", "BC":
		return r.oneOf(&r.bc, eras, 0, n)
	case "MONTH", "MON":
		prefix := 0
		if name == "MON" {
			prefix = 3
		}
		var x timeNumber
		if err = r.oneOf(&x, monthNames[:], prefix, n); err != nil {
			return err
		}
		return r.mm.put(x.v+1, n.field)
	case "MM":
		_, err = r.number(&r.mm, 2, t, i)
	case "DAY", "DY":
		prefix := 0
		if name == "DY" {
			prefix = 3
		}
		var x timeNumber
		if err = r.oneOf(&x, dayNames[:], prefix, n); err != nil {
			return err
		}
		return r.d.put(x.v+1, n.field)
	case "DDD", "IDDD":
		_, err = r.number(&r.ddd, 3, t, i)
	case "DD":
		_, err = r.number(&r.dd, 2, t, i)
	case "D":
		_, err = r.number(&r.d, 1, t, i)
	case "ID":
		var x timeNumber
		if _, err = r.number(&x, 1, t, i); err == nil {
			if x.v++; x.v > 7 { // 1 is Sunday
				x.v = 1
			}
			err = r.d.put(x.v, n.field)
		}
	case "WW", "IW":
		_, err = r.number(&r.ww, 2, t, i)
	case "Q":
		var x timeNumber
		_, err = r.number(&x, 1, t, i)
	case "CC":
		_, err = r.number(&r.cc, 2, t, i)
	case "Y,YYY":
		return r.thousands(n)
	case "YYYY", "IYYY":
		_, err = r.number(&r.year, 4, t, i)
		r.yearDigits = 4
	case "YYY", "IYY", "YY", "IY", "Y", "I":
		width := len(name)
		var x timeNumber
		if k, err = r.number(&x, width, t, i); err == nil {
			if k < 4 {
				x.v = nearYear(x.v)
			}
			err = r.year.put(x.v, n.field)
		}
		r.yearDigits = width
	case "RM":
		var x timeNumber
		if err = r.oneOf(&x, romanSearch, 0, n); err == nil {
			err = r.mm.put(12-x.v, n.field)
		}
		return err
	case "W":
		_, err = r.number(&r.w, 1, t, i)
	case "J":
		_, err = r.number(&r.julian, 9, t, i)
	}
	if err == nil {
		r.ordinal(n)
	}
	return err
}

// nearYear puts a year of less than four digits near 2020.
func nearYear(y int) int {
	switch {
	case y < 70:
		return y + 2000
	case y < 100:
		return y + 1900
	case y < 520:
		return y + 2000
	case y < 1000:
		return y + 1000
	}
	return y
}

func (r *timeReader) thousands(n *templateNode) *pgerr.Error {
	head, rest, ok := strings.Cut(string(r.s), ",")
	k := 0
	for k < len(rest) && k < 3 && rest[k] >= '0' && rest[k] <= '9' {
		k++
	}
	m, err1 := strconv.Atoi(strings.TrimSpace(head))
	y, err2 := strconv.Atoi(rest[:k])
	if !ok || err1 != nil || err2 != nil || m > 1<<20 || m < -1<<20 {
		return pgerr.New(pgerr.InvalidDatetimeFormat, "invalid input string for \"Y,YYY\"")
	}
	r.s = r.s[len(head)+1+k:]
	r.yearDigits = 4
	return r.year.put(y+m*1000, n.field)
}

// result is the day and the time of day that the fields say.
func (r *timeReader) result() (days int32, us int64, err *pgerr.Error) {
	hour, min, sec := r.hh.v, r.mi.v, r.ss.v
	bad := pgerr.Newf // only called on errors
	outOfRange := func() *pgerr.Error {
		return bad(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", r.text)
	}
	if x := r.ssss.v; x != 0 {
		hour, min, sec = x/3600, x/60%60, x%60
		if r.hh.v != 0 {
			hour = r.hh.v
		}
		if r.mi.v != 0 {
			min = r.mi.v
		}
		if r.ss.v != 0 {
			sec = r.ss.v
		}
	}
	if r.clock12 {
		if hour < 1 || hour > 12 {
			return 0, 0, bad(pgerr.InvalidDatetimeFormat, "hour \"%d\" is invalid for the 12-hour clock", hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		pm := r.half.v == 1
		if pm && hour < 12 {
			hour += 12
		} else if !pm && hour == 12 {
			hour = 0
		}
	}
	year, month, day := 0, 1, 1
	bc := r.bc.v == 1
	switch {
	case r.year.v != 0:
		year = r.year.v
		switch {
		case r.cc.v != 0 && r.yearDigits <= 2:
			cc := r.cc.v
			if bc {
				cc = -cc
			}
			if year %= 100; year != 0 {
				if cc >= 0 {
					year += (cc - 1) * 100
				} else {
					year = (cc+1)*100 - year + 1
				}
			} else {
				year = cc * 100
				if cc < 0 {
					year++
				}
			}
		case bc:
			year = 1 - year
		case year < 0: // a negative year is BC
			year++
		}
	case r.cc.v != 0:
		cc := r.cc.v
		if bc {
			cc = -cc
		}
		if cc >= 0 {
			year = (cc-1)*100 + 1
		} else {
			year = cc*100 + 1
		}
	}
	if year > 6_000_000 || year < -6_000_000 {
		return 0, 0, outOfRange()
	}
	hasMonth, hasDay := r.mm.v != 0, r.dd.v != 0
	if hasMonth {
		month = r.mm.v
	}
	if hasDay {
		day = r.dd.v
	}
	ddd := r.ddd.v
	set := func(d int32) {
		year, month, day = pgtype.Civil(d)
		hasMonth, hasDay = true, true
	}
	if r.julian.v != 0 {
		d := int64(r.julian.v) - julianEpoch
		if !pgtype.DateInRange(d) {
			return 0, 0, outOfRange()
		}
		set(int32(d))
	}
	if r.ww.v != 0 {
		if r.iso {
			wday := 0
			if r.d.v > 1 {
				wday = r.d.v - 2
			} else if r.d.v == 1 {
				wday = 6
			}
			set(firstISODay(year) + int32(r.ww.v-1)*7 + int32(wday))
		} else {
			ddd = (r.ww.v-1)*7 + 1
		}
	}
	if r.w.v != 0 {
		day, hasDay = (r.w.v-1)*7+1, true
	}
	if ddd != 0 && (!hasMonth || !hasDay) {
		switch {
		case year == 0 && !bc:
			return 0, 0, errDayOfYear
		case r.iso:
			set(firstISODay(year) + int32(ddd) - 1)
		default:
			n := 365
			if pgtype.IsLeap(year) {
				n = 366
			}
			if ddd < 1 || ddd > n {
				return 0, 0, outOfRange()
			}
			set(pgtype.Days(year, 1, 1) + int32(ddd) - 1)
		}
	}
	fraction := r.ms.v*1000 + r.us.v
	if month < 1 || month > 12 || day < 1 || day > pgtype.MonthDays(year, month) ||
		hour < 0 || hour > 23 || min < 0 || min > 59 || sec < 0 || sec > 59 || fraction < 0 || fraction >= 1_000_000 {
		return 0, 0, outOfRange()
	}
	if r.tzSign != 0 {
		if r.tzh.v < 0 || r.tzh.v > 15 || r.tzm.v < 0 || r.tzm.v > 59 {
			return 0, 0, bad(pgerr.InvalidTimeZoneDisplacementValue, "time zone displacement out of range: \"%s\"", r.text)
		}
		r.zoned, r.offset = true, r.tzSign*(r.tzh.v*3600+r.tzm.v*60)
	}
	d := pgtype.Days(year, month, day)
	if !pgtype.DateInRange(int64(d)) {
		return 0, 0, bad(pgerr.DatetimeFieldOverflow, "date out of range: \"%s\"", r.text)
	}
	return d, int64(time.Duration(hour)*time.Hour+time.Duration(min)*time.Minute+time.Duration(sec)*time.Second)/1000 + int64(fraction), nil
}
