package expr

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// numberToText are to_char of numbers.
var numberToText = []Overload{
	{Name: "to_char", Args: []column.Type{tInt4, tText}, Result: tText, Make: makeNumberToChar},
	{Name: "to_char", Args: []column.Type{tInt8, tText}, Result: tText, Make: makeNumberToChar},
	{Name: "to_char", Args: []column.Type{tFloat4, tText}, Result: tText, Make: makeNumberToChar},
	{Name: "to_char", Args: []column.Type{tFloat8, tText}, Result: tText, Make: makeNumberToChar},
	{Name: "to_char", Args: []column.Type{tNumeric, tText}, Result: tText, Make: makeNumberToChar},
}

// numberFormat is a parsed format of a number.
type numberFormat struct {
	nodes                                                       []numberNode
	pre, post, multi                                            int // digits before the point, after it, and after V
	zeroStart, zeroEnd                                          int
	signBefore                                                  bool // S stands before the digits
	preSign                                                     int
	decimal, zero, fill, sign, plus, minus, bracket, roman, sci bool
	shifts                                                      bool // V
}

type numberNode struct {
	field string // upper case; "" for text
	text  string
	upper bool
}

var numberFields = strings.Fields(", . 0 9 B C D EEEE FM G L MI PL PR RN SG SP S TH V")

func errNumberFormat(format string, args ...any) *pgerr.Error {
	return pgerr.Newf(pgerr.SyntaxError, format, args...)
}

func parseNumberFormat(f string) (nf *numberFormat, err *pgerr.Error) {
	nf = &numberFormat{}
	for f != "" && err == nil {
		var n numberNode
		for _, name := range numberFields {
			if len(f) >= len(name) && (f[:len(name)] == name || f[:len(name)] == strings.ToLower(name)) {
				n = numberNode{field: name, upper: f[0] < 'a'}
				f = f[len(name):]
				break
			}
		}
		if n.field != "" {
			err = nf.note(n.field)
			if n.field != "FM" && n.field != "SP" {
				nf.nodes = append(nf.nodes, n)
			}
			continue
		}
		if f[0] == '"' {
			f = f[1:]
			for f != "" && f[0] != '"' {
				if f[0] == '\\' && len(f) > 1 {
					f = f[1:]
				}
				k := charLen(f)
				nf.nodes = append(nf.nodes, numberNode{text: f[:k]})
				f = f[k:]
			}
			f = strings.TrimPrefix(f, `"`)
			continue
		}
		if f[0] == '\\' && len(f) > 1 && f[1] == '"' {
			f = f[1:]
		}
		k := charLen(f)
		nf.nodes = append(nf.nodes, numberNode{text: f[:k]})
		f = f[k:]
	}
	return nf, err
}

// note takes a field into account.
func (nf *numberFormat) note(field string) *pgerr.Error {
	if nf.sci && field != "EEEE" {
		return errNumberFormat("\"EEEE\" must be the last pattern used")
	}
	switch field {
	case "9", "0":
		if nf.bracket {
			return errNumberFormat("\"%s\" must be ahead of \"PR\"", field)
		}
		if field == "9" && nf.shifts {
			nf.multi++
			return nil
		}
		if field == "0" && !nf.zero && !nf.decimal {
			nf.zero = true
			nf.zeroStart = nf.pre + 1
		}
		if nf.decimal {
			nf.post++
		} else {
			nf.pre++
		}
		if field == "0" {
			nf.zeroEnd = nf.pre + nf.post
		}
	case ".", "D":
		if nf.decimal {
			return errNumberFormat("multiple decimal points")
		}
		if nf.shifts {
			return errNumberFormat("cannot use \"V\" and decimal point together")
		}
		nf.decimal = true
	case "FM":
		nf.fill = true
	case "S":
		if nf.sign {
			return errNumberFormat("cannot use \"S\" twice")
		}
		if nf.plus || nf.minus || nf.bracket {
			return errNumberFormat("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
		}
		nf.sign = true
		nf.signBefore = !nf.decimal
		nf.preSign = nf.pre
	case "MI":
		if nf.sign {
			return errNumberFormat("cannot use \"S\" and \"MI\" together")
		}
		nf.minus = true
	case "PL":
		if nf.sign {
			return errNumberFormat("cannot use \"S\" and \"PL\" together")
		}
		nf.plus = true
	case "SG":
		if nf.sign {
			return errNumberFormat("cannot use \"S\" and \"SG\" together")
		}
		nf.plus, nf.minus = true, true
	case "PR":
		if nf.sign || nf.plus || nf.minus {
			return errNumberFormat("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
		}
		nf.bracket = true
	case "RN":
		nf.roman = true
	case "V":
		if nf.decimal {
			return errNumberFormat("cannot use \"V\" and decimal point together")
		}
		nf.shifts = true
	case "EEEE":
		if nf.sci {
			return errNumberFormat("cannot use \"EEEE\" twice")
		}
		if nf.fill || nf.sign || nf.bracket || nf.minus || nf.plus || nf.roman || nf.shifts {
			return errNumberFormat("\"EEEE\" is incompatible with other formats").
				WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
		}
		nf.sci = true
	}
	return nil
}

func (nf *numberFormat) ordinal() bool {
	return slices.ContainsFunc(nf.nodes, func(n numberNode) bool { return n.field == "TH" })
}

func makeNumberToChar(s *Site) (Kernel, error) {
	type parsed struct {
		nf  *numberFormat
		err *pgerr.Error
	}
	kind := s.Args[0].Kind
	known := map[string]parsed{}
	return func(c *Call) {
		f, w := c.Texts(1), c.Text()
		v := c.Args[0]
		for _, row := range c.Rows() {
			format := f.At(row)
			p, ok := known[string(format)]
			if !ok {
				if len(known) >= maxPatterns {
					clear(known)
				}
				p.nf, p.err = parseNumberFormat(string(format))
				known[string(format)] = p
			}
			if p.err != nil {
				c.Fail(row, p.err)
				continue
			}
			i := int(row) & c.mask(0)
			var x decimal.Decimal
			var real float64
			isReal := false
			switch kind {
			case column.Int32:
				x = decimal.FromInt64(int64(v.I32[i]))
			case column.Int64:
				x = decimal.FromInt64(v.I64[i])
			case column.Float32:
				real, isReal = float64(v.F32[i]), true
			case column.Float64:
				real, isReal = v.F64[i], true
			default:
				x = v.Dec[i]
			}
			digits := 15
			switch kind {
			case column.Float32:
				digits = 6
			case column.Int32:
				digits = integerDigits
			}
			var err *pgerr.Error
			if w.Buf, err = p.nf.append(w.Buf, x, real, isReal, digits); err != nil {
				w.Drop()
				c.Fail(row, err)
				continue
			}
			w.End(row)
		}
	}, nil
}

// append writes a number: x, or a real one of so many digits.
func (f *numberFormat) append(dst []byte, x decimal.Decimal, real float64, isReal bool, digits int) ([]byte, *pgerr.Error) {
	nf := *f
	if nf.roman {
		var n int64
		ok := true
		if isReal {
			if math.Abs(real) < 1<<31 {
				n = int64(math.RoundToEven(real))
			}
		} else {
			if !x.IsFinite() {
				return dst, pgerr.Newf(pgerr.FeatureNotSupported, "cannot convert %s to integer", map[bool]string{true: "NaN", false: "infinity"}[x.IsNaN()])
			}
			r, err := x.Round(0)
			if err != nil {
				return dst, pgerr.From(err)
			}
			n, _, ok = r.Int64()
			ok = ok && n == int64(int32(n))
		}
		if !ok {
			return dst, errInt4Range
		}
		return nf.process(dst, roman(n), false, 0), nil
	}
	if nf.sci {
		var text string
		if n, scale, ok := x.Int64(); !isReal && ok && digits == integerDigits && scale == 0 { // PostgreSQL goes through a double
			real, isReal = float64(n), true
		}
		switch {
		case isReal && !math.IsNaN(real) && !math.IsInf(real, 0):
			text = strconv.FormatFloat(real, 'e', nf.post, 64)
		case !isReal && x.IsFinite():
			text = sciText(x, nf.post)
		default:
			text = " " + strings.Repeat("#", nf.pre) + "." + strings.Repeat("#", nf.post+4)
			return append(dst, text...), nil
		}
		if text[0] != '-' {
			dst = append(dst, ' ')
		}
		return append(dst, text...), nil
	}
	var text string
	if nf.shifts {
		if isReal {
			real *= math.Pow10(nf.multi)
		} else if x.IsFinite() {
			scale, err := decimal.Parse("1" + strings.Repeat("0", nf.multi))
			if err == nil {
				x, err = x.Mul(scale)
			}
			if err != nil {
				return dst, pgerr.From(err)
			}
		}
		nf.pre += nf.multi
	}
	if isReal {
		n := len(strconv.FormatFloat(math.Abs(real), 'f', 0, 64))
		if n >= digits {
			nf.post = 0
		} else if n+nf.post > digits {
			nf.post = digits - n
		}
		text = strings.TrimPrefix(strconv.FormatFloat(real, 'f', nf.post, 64), "+")
		text = strings.Replace(text, "Inf", "Infinity", 1)
	} else {
		r, err := x.Round(nf.post)
		if err != nil {
			return dst, pgerr.From(err)
		}
		text = r.String()
	}
	negative := strings.HasPrefix(text, "-")
	if last := text[len(text)-1]; (last < '0' || last > '9') && !negative && !nf.decimal && nf.ordinal() {
		return dst, pgerr.Newf(pgerr.InvalidTextRepresentation, "\"%s\" is not a number", text)
	}
	text = strings.TrimPrefix(text, "-")
	preLen := strings.IndexByte(text, '.')
	if preLen < 0 {
		preLen = len(text)
	}
	spaces := 0
	if preLen < nf.pre {
		spaces = nf.pre - preLen
	} else if preLen > nf.pre {
		text = strings.Repeat("#", nf.pre) + "." + strings.Repeat("#", nf.post)
	}
	return nf.process(dst, text, negative, spaces), nil
}

// integerDigits stands for the digits of an integer, which are not limited.
const integerDigits = -1

func sciText(x decimal.Decimal, scale int) string {
	text := x.Abs().String()
	point := strings.IndexByte(text, '.')
	if point < 0 {
		point = len(text)
	}
	exp := 0
	if i := strings.IndexFunc(text, func(r rune) bool { return r >= '1' && r <= '9' }); i >= 0 {
		if exp = point - i; i < point {
			exp--
		}
	}
	d, _ := decimal.Parse(x.String() + "e" + strconv.Itoa(-exp))
	d, _ = d.Round(scale)
	m := d.String() // perhaps rounded up to 10: PostgreSQL leaves it so
	sign := "+"
	if exp < 0 {
		sign, exp = "-", -exp
	}
	e := strconv.Itoa(exp)
	if len(e) < 2 {
		e = "0" + e
	}
	return m + "e" + sign + e
}

func roman(n int64) string {
	if n < 1 || n > 3999 {
		return strings.Repeat("#", 15)
	}
	var b strings.Builder
	for _, r := range []struct {
		v int64
		s string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; n >= r.v; n -= r.v {
			b.WriteString(r.s)
		}
	}
	return b.String()
}

// numberWriter writes the digits of a number into a format.
type numberWriter struct {
	f           *numberFormat
	dst         []byte
	num         string
	at          int // in num
	last        int // the last digit that counts, in fill mode; -1: all do
	curr, count int
	spaces      int
	negative    bool
	signed      bool // the sign is written, or not needed
	in          bool // a digit was written last
}

func (f *numberFormat) process(dst []byte, num string, negative bool, spaces int) []byte {
	w := &numberWriter{f: f, dst: dst, num: num, last: -1, spaces: spaces, negative: negative}
	if f.plus || f.minus {
		w.signed = !f.plus || f.minus
	} else {
		if !negative && f.fill {
			f.bracket = false
		}
		w.signed = !negative && f.fill && !f.sign
		if f.signBefore && f.pre == f.preSign {
			f.signBefore = false
		}
	}
	w.count = f.post + f.pre - 1
	if f.fill && f.decimal {
		p := max(strings.IndexByte(num, '.'), 0)
		w.last = p
		for i := p + 1; i < len(num); i++ {
			if num[i] != '0' {
				w.last = i
			}
		}
		if f.zeroEnd > spaces {
			w.last = max(w.last, min(f.zeroEnd-spaces, len(num)-1))
		}
	}
	if !w.signed && spaces == 0 {
		w.count++
	}
	if f.zeroStart > 0 {
		f.zeroStart--
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		switch n.field {
		case "":
			w.dst = append(w.dst, n.text...)
		case "9", "0", ".", "D":
			w.digit(n.field)
		case ",", "G":
			if w.in {
				w.dst = append(w.dst, ',')
			} else if !f.fill {
				w.dst = append(w.dst, ' ')
			}
		case "L":
			w.dst = append(w.dst, ' ')
		case "RN":
			text := num
			if !n.upper {
				text = strings.ToLower(num)
			}
			if !f.fill {
				w.dst = appendSpaces(w.dst, 15-len(text))
			}
			w.dst = append(w.dst, text...)
		case "TH":
			if !f.roman && !strings.HasPrefix(num, "#") && !negative && !f.decimal {
				w.dst = append(w.dst, appendOrdinal([]byte(num), 0, n.upper)[len(num):]...)
			}
		case "MI":
			if negative {
				w.dst = append(w.dst, '-')
			} else if !f.fill {
				w.dst = append(w.dst, ' ')
			}
		case "PL":
			if !negative {
				w.dst = append(w.dst, '+')
			} else if !f.fill {
				w.dst = append(w.dst, ' ')
			}
		case "SG":
			w.dst = append(w.dst, w.signByte())
		}
	}
	return w.dst
}

func (w *numberWriter) signByte() byte {
	if w.negative {
		return '-'
	}
	return '+'
}

// hidesZero: the 0 before the point of a format such as 9.9 is a space.
func (w *numberWriter) hidesZero() bool {
	return !w.f.zero && w.at == 0 && strings.HasPrefix(w.num, "0") && w.f.post != 0
}

func (w *numberWriter) lastIsPoint() bool {
	return w.last >= 0 && w.last < len(w.num) && w.num[w.last] == '.'
}

func (w *numberWriter) digit(field string) {
	f := w.f
	if f.roman {
		return
	}
	w.in = false
	if !w.signed && (w.curr >= w.spaces || f.zero && f.zeroStart == w.curr) && (!w.hidesZero() || w.lastIsPoint()) {
		switch {
		case f.sign:
			if f.signBefore {
				w.dst = append(w.dst, w.signByte())
				w.signed = true
			}
		case f.bracket:
			c := byte(' ')
			if w.negative {
				c = '<'
			}
			w.dst = append(w.dst, c)
			w.signed = true
		case w.negative:
			w.dst = append(w.dst, '-')
			w.signed = true
		default:
			if !f.fill {
				w.dst = append(w.dst, ' ')
			}
			w.signed = true
		}
	}
	switch {
	case w.curr < w.spaces && (f.zeroStart > w.curr || !f.zero):
		if !f.fill {
			w.dst = append(w.dst, ' ')
		}
	case f.zero && w.curr < w.spaces && f.zeroStart <= w.curr:
		w.dst = append(w.dst, '0')
		w.in = true
	default:
		c := byte(0)
		if w.at < len(w.num) {
			c = w.num[w.at]
		}
		switch {
		case c == '.':
			w.dst = append(w.dst, '.')
		case w.last >= 0 && w.at > w.last && field != "0":
		case w.hidesZero():
			if !f.fill {
				w.dst = append(w.dst, ' ')
			} else if w.lastIsPoint() {
				w.dst = append(w.dst, '0')
			}
		case c != 0:
			w.dst = append(w.dst, c)
			w.in = true
		}
		if c != 0 {
			w.at++
		}
	}
	end := w.count
	if w.spaces > 0 {
		end++
	}
	if f.decimal {
		end++
	}
	if w.last >= 0 && w.last == w.at {
		end = w.curr
	}
	if w.curr+1 == end {
		switch {
		case w.signed && f.bracket:
			c := byte(' ')
			if w.negative {
				c = '>'
			}
			w.dst = append(w.dst, c)
		case f.sign && !f.signBefore:
			w.dst = append(w.dst, w.signByte())
		}
	}
	w.curr++
}
