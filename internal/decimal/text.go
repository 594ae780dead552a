package decimal

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
)

// Parse reads PostgreSQL's text form: spaces around are ignored; NaN, Infinity and inf in any case.
func Parse(s string) (Decimal, error) { return parse(s) }

// ParseBytes is Parse of bytes, which it does not keep.
func ParseBytes(s []byte) (Decimal, error) { return parse(s) }

func errSyntax(s string) error {
	return pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type numeric: \"%s\"", s)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func parse[T string | []byte](s T) (Decimal, error) {
	i, n := 0, len(s)
	for i < n && isSpace(s[i]) {
		i++
	}
	for n > i && isSpace(s[n-1]) {
		n--
	}
	start := i
	neg := false
	if i < n && (s[i] == '+' || s[i] == '-') {
		neg = s[i] == '-'
		i++
	}
	if i >= n {
		return Decimal{}, errSyntax(string(s))
	}
	if c := s[i]; (c < '0' || c > '9') && c != '.' {
		return parseSpecial(string(s[start:n]), string(s))
	}
	var u u128
	first, digits, scale, point, fits := i, 0, 0, false, true
	for ; i < n; i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		c -= '0'
		if c > 9 {
			break
		}
		digits++
		if point {
			scale++
		}
		if fits {
			if u.hi == 0 && u.lo < 1e18 {
				u.lo = u.lo*10 + uint64(c)
				continue
			}
			m, ok := u.mul64(10)
			if ok {
				m, ok = m.add(u128{0, uint64(c)})
			}
			if !ok || !m.fits() {
				fits = false
				continue
			}
			u = m
		}
	}
	if digits == 0 {
		return Decimal{}, errSyntax(string(s))
	}
	last, exp := i, 0
	if i < n && (s[i] == 'e' || s[i] == 'E') {
		i++
		expNeg := false
		if i < n && (s[i] == '+' || s[i] == '-') {
			expNeg = s[i] == '-'
			i++
		}
		if i >= n || s[i] < '0' || s[i] > '9' {
			return Decimal{}, errSyntax(string(s))
		}
		for ; i < n && s[i] >= '0' && s[i] <= '9'; i++ {
			if exp < 1<<30 {
				exp = exp*10 + int(s[i]-'0')
			}
		}
		if expNeg {
			exp = -exp
		}
	}
	if i != n {
		return Decimal{}, errSyntax(string(s))
	}
	if exp >= 1<<30-1 || exp <= -(1<<30-1) {
		return Decimal{}, errOverflow
	}
	scale -= exp
	if fits {
		if u.isZero() {
			if scale > MaxScale {
				return Decimal{}, errOverflow
			}
			return from128(u, false, max(scale, 0)), nil
		}
		if scale > MaxScale {
			return Decimal{}, errOverflow
		}
		if scale >= 0 {
			return from128(u, neg, scale), nil
		}
		return from128(u, neg, 0).times10(-scale)
	}
	if scale > MaxScale {
		return Decimal{}, errOverflow
	}
	text := make([]byte, 0, last-first)
	for _, c := range []byte(s[first:last]) {
		if c != '.' {
			text = append(text, c)
		}
	}
	text = trimZeros(text)
	if len(text)-scale > MaxIntegerDigits {
		return Decimal{}, errOverflow
	}
	z, ok := new(big.Int).SetString(string(text), 10)
	if !ok {
		return Decimal{}, errSyntax(string(s))
	}
	if scale < 0 {
		z.Mul(z, bigPow10(-scale))
		scale = 0
	}
	if neg {
		z.Neg(z)
	}
	return fromBig(z, scale)
}

// trimZeros drops zeros in front, leaving one digit.
func trimZeros(s []byte) []byte {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}

func parseSpecial(s, whole string) (Decimal, error) {
	switch strings.ToLower(s) {
	case "nan":
		return NaN, nil
	case "infinity", "+infinity", "inf", "+inf":
		return Inf, nil
	case "-infinity", "-inf":
		return NegInf, nil
	}
	return Decimal{}, errSyntax(whole)
}

// String is PostgreSQL's text form.
func (d Decimal) String() string { return string(d.Append(nil)) }

// Append appends PostgreSQL's text form: scale digits after the point, never an exponent.
func (d Decimal) Append(dst []byte) []byte {
	switch d.form {
	case nan:
		return append(dst, "NaN"...)
	case infinite:
		return append(dst, "Infinity"...)
	case negInfinite:
		return append(dst, "-Infinity"...)
	}
	if d.big != nil {
		if d.big.Sign() < 0 {
			dst = append(dst, '-')
		}
		return appendPoint(dst, new(big.Int).Abs(d.big).Append(nil, 10), int(d.scale))
	}
	u, neg := d.abs()
	if neg {
		dst = append(dst, '-')
	}
	if d.scale == 0 && u.hi == 0 {
		return strconv.AppendUint(dst, u.lo, 10)
	}
	var buf [40]byte
	return appendPoint(dst, u.text(&buf), int(d.scale))
}

// text writes the decimal digits of a to the end of buf; "0" for zero.
func (a u128) text(buf *[40]byte) []byte {
	i := len(buf)
	for a.hi != 0 {
		q, r := a.div64(1e18)
		for range 18 {
			i--
			buf[i] = byte('0' + r%10)
			r /= 10
		}
		a = q
	}
	x := a.lo
	for {
		i--
		buf[i] = byte('0' + x%10)
		x /= 10
		if x == 0 {
			return buf[i:]
		}
	}
}

// appendPoint appends digits with a point before the last scale ones.
func appendPoint(dst, digits []byte, scale int) []byte {
	whole := len(digits) - scale
	if whole <= 0 {
		dst = append(dst, '0')
	} else {
		dst = append(dst, digits[:whole]...)
		digits = digits[whole:]
	}
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	for ; whole < 0; whole++ {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}
