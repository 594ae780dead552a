package decimal

import (
	"encoding/binary"
	"math/big"

	"github.com/leat-io/leat/internal/pgerr"
)

// Signs of the wire form.
const (
	wireNegative = 0x4000
	wireNaN      = 0xc000
	wireInf      = 0xd000
	wireNegInf   = 0xf000

	wireInfScale = 0x20 // what PostgreSQL sends as the scale of infinities
)

// AppendWire appends PostgreSQL's binary wire form: the number of digits base 10^4, the weight of the first, sign and scale, two bytes
// each, then the digits.
func (d Decimal) AppendWire(dst []byte) []byte {
	head := func(n, weight int, sign, scale uint16) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
		dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
		dst = binary.BigEndian.AppendUint16(dst, sign)
		dst = binary.BigEndian.AppendUint16(dst, scale)
	}
	switch d.form {
	case nan:
		head(0, 0, wireNaN, 0)
		return dst
	case infinite:
		head(0, 0, wireInf, wireInfScale)
		return dst
	case negInfinite:
		head(0, 0, wireNegInf, wireInfScale)
		return dst
	}
	if d.IsZero() {
		head(0, 0, 0, d.scale)
		return dst
	}
	var buf [40]byte
	var text []byte
	sign := uint16(0)
	if d.big != nil {
		text = new(big.Int).Abs(d.big).Append(nil, 10)
	} else {
		u, _ := d.abs()
		text = u.text(&buf)
	}
	if d.Sign() < 0 {
		sign = wireNegative
	}
	e := len(text) - 1 - int(d.scale) // of the first decimal digit
	weight := floorDiv(e, baseDigits)
	lead := e - weight*baseDigits + 1 // decimal digits in the first digit
	for len(text) > 0 && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	n := 1
	if len(text) > lead {
		n += (len(text) - lead + baseDigits - 1) / baseDigits
	}
	head(n, weight, sign, d.scale)
	for at := lead - baseDigits; n > 0; n-- {
		x := uint16(0)
		for i := at; i < at+baseDigits; i++ {
			x *= 10
			if i >= 0 && i < len(text) {
				x += uint16(text[i] - '0')
			}
		}
		dst = binary.BigEndian.AppendUint16(dst, x)
		at += baseDigits
	}
	return dst
}

// FromWire reads PostgreSQL's binary wire form. It keeps nothing of src.
func FromWire(src []byte) (Decimal, error) {
	bad := func(what string) (Decimal, error) {
		return Decimal{}, pgerr.Newf(pgerr.InvalidBinaryRepresentation, "invalid %s in external \"numeric\" value", what)
	}
	if len(src) < 8 {
		return bad("length")
	}
	n := int(binary.BigEndian.Uint16(src))
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	sign := binary.BigEndian.Uint16(src[4:])
	scale := int(binary.BigEndian.Uint16(src[6:]))
	src = src[8:]
	if len(src) != 2*n {
		return bad("length")
	}
	switch sign {
	case 0, wireNegative:
	case wireNaN:
		return NaN, nil
	case wireInf:
		return Inf, nil
	case wireNegInf:
		return NegInf, nil
	default:
		return bad("sign")
	}
	if scale > MaxScale {
		return bad("scale")
	}
	text := make([]byte, 0, 4*n+4)
	for i := range n {
		x := binary.BigEndian.Uint16(src[2*i:])
		if x > 9999 {
			return bad("digit")
		}
		text = append(text, byte('0'+x/1000), byte('0'+x/100%10), byte('0'+x/10%10), byte('0'+x%10))
	}
	if n == 0 {
		return from128(u128{}, false, scale), nil
	}
	// The value is text * 10^-have; digits behind the scale are cut off, as PostgreSQL does.
	have := (n - 1 - weight) * baseDigits
	z, ok := new(big.Int).SetString(string(text), 10)
	if !ok {
		return bad("digit")
	}
	if have > scale {
		z.Quo(z, bigPow10(have-scale))
	} else {
		z.Mul(z, bigPow10(scale-have))
	}
	if sign == wireNegative {
		z.Neg(z)
	}
	return fromBig(z, scale)
}
