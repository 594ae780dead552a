package decimal

import (
	"encoding/binary"
	"errors"
	"math/big"
	"math/bits"
)

// The binary form, for rows: a header byte, whose low 3 bits say what follows and whose high 5 bits are the scale (31: the scale is a
// uvarint after the header), then the coefficient: a zigzag varint (code64), 16 bytes little-endian two's complement (code128), or
// a uvarint length and so many big-endian bytes of the magnitude (codeBig, codeBigNeg).
const (
	code64 = iota
	code128
	codeBig
	codeBigNeg
	codeNaN
	codeInf
	codeNegInf
)

// maxBigBytes bounds the coefficient of a value within PostgreSQL's limits: 147,455 digits.
const maxBigBytes = 61300

var errBinary = errors.New("numeric: malformed binary value")

// AppendBinary appends a compact form that keeps the scale. It delimits itself.
func (d Decimal) AppendBinary(dst []byte) []byte {
	switch d.form {
	case nan:
		return append(dst, codeNaN)
	case infinite:
		return append(dst, codeInf)
	case negInfinite:
		return append(dst, codeNegInf)
	}
	code := byte(code128)
	switch {
	case d.big != nil && d.big.Sign() < 0:
		code = codeBigNeg
	case d.big != nil:
		code = codeBig
	case d.small64():
		code = code64
	}
	if d.scale < 31 {
		dst = append(dst, code|byte(d.scale)<<3)
	} else {
		dst = append(dst, code|31<<3)
		dst = binary.AppendUvarint(dst, uint64(d.scale))
	}
	switch code {
	case code64:
		return binary.AppendVarint(dst, int64(d.lo))
	case code128:
		dst = binary.LittleEndian.AppendUint64(dst, d.lo)
		return binary.LittleEndian.AppendUint64(dst, uint64(d.hi))
	}
	b := d.big.Bytes()
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// Decode reads what AppendBinary wrote and returns how many bytes it took. It keeps nothing of src.
func Decode(src []byte) (Decimal, int, error) {
	if len(src) == 0 {
		return Decimal{}, 0, errBinary
	}
	head, at := src[0], 1
	scale := uint64(head >> 3)
	code := head & 7
	switch code {
	case codeNaN:
		return NaN, 1, nil
	case codeInf:
		return Inf, 1, nil
	case codeNegInf:
		return NegInf, 1, nil
	}
	if scale == 31 {
		x, n := binary.Uvarint(src[at:])
		if n <= 0 || x > MaxScale {
			return Decimal{}, 0, errBinary
		}
		scale, at = x, at+n
	}
	switch code {
	case code64:
		x, n := binary.Varint(src[at:])
		if n <= 0 {
			return Decimal{}, 0, errBinary
		}
		d := FromInt64(x)
		d.scale = uint16(scale)
		return d, at + n, nil
	case code128:
		if len(src)-at < 16 {
			return Decimal{}, 0, errBinary
		}
		d := Decimal{lo: binary.LittleEndian.Uint64(src[at:]), hi: int64(binary.LittleEndian.Uint64(src[at+8:])), scale: uint16(scale)}
		if d.hi == -maxHi-1 && d.lo == 0 {
			return Decimal{}, 0, errBinary
		}
		return d, at + 16, nil
	case codeBig, codeBigNeg:
		x, n := binary.Uvarint(src[at:])
		if n <= 0 || x > maxBigBytes || uint64(len(src)-at-n) < x {
			return Decimal{}, 0, errBinary
		}
		at += n
		z := new(big.Int).SetBytes(src[at : at+int(x)])
		if code == codeBigNeg {
			z.Neg(z)
		}
		d, err := fromBig(z, int(scale))
		return d, at + int(x), err
	}
	return Decimal{}, 0, errBinary
}

// The key form, memcomparable and without the scale: a class byte; for numbers the decimal exponent e (value = 0.d1d2... * 10^e, d1 not
// 0) plus 2^23 in 3 bytes; then the digits in pairs, a byte each, pair*2+1 while more follow and pair*2 for the last. Of a
// negative number all that comes after the class is inverted.
const (
	keyNegInf   = 0x10
	keyNegative = 0x20
	keyZero     = 0x30
	keyPositive = 0x40
	keyInf      = 0x50
	keyNaN      = 0x60

	keyExpBias = 1 << 23
)

// AppendKey appends a form whose order as bytes is the order of values. Equal values have equal bytes; the scale is lost
// (DecodeKey gives the smallest one). It delimits itself.
func (d Decimal) AppendKey(dst []byte) []byte {
	switch d.form {
	case nan:
		return append(dst, keyNaN)
	case infinite:
		return append(dst, keyInf)
	case negInfinite:
		return append(dst, keyNegInf)
	}
	var buf [40]byte
	var text []byte
	neg := false
	if d.big != nil {
		neg = d.big.Sign() < 0
		text = new(big.Int).Abs(d.big).Append(nil, 10)
	} else {
		var u u128
		u, neg = d.abs()
		if u.isZero() {
			return append(dst, keyZero)
		}
		text = u.text(&buf)
	}
	exp := uint32(len(text) - int(d.scale) + keyExpBias)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	flip := byte(0)
	if neg {
		flip = 0xff
		dst = append(dst, keyNegative)
	} else {
		dst = append(dst, keyPositive)
	}
	dst = append(dst, byte(exp>>16)^flip, byte(exp>>8)^flip, byte(exp)^flip)
	for len(text) > 2 {
		dst = append(dst, (((text[0]-'0')*10+text[1]-'0')<<1|1)^flip)
		text = text[2:]
	}
	pair := (text[0] - '0') * 10
	if len(text) == 2 {
		pair += text[1] - '0'
	}
	return append(dst, pair<<1^flip)
}

// KeySize is how many bytes the key form at the start of src takes.
func KeySize(src []byte) (int, error) {
	if len(src) == 0 {
		return 0, errBinary
	}
	flip := byte(0)
	switch src[0] {
	case keyNegInf, keyZero, keyInf, keyNaN:
		return 1, nil
	case keyNegative:
		flip = 0xff
	case keyPositive:
	default:
		return 0, errBinary
	}
	for i := 4; i < len(src); i++ {
		if (src[i]^flip)&1 == 0 {
			return i + 1, nil
		}
	}
	return 0, errBinary
}

// DecodeKey reads what AppendKey wrote and returns how many bytes it took.
func DecodeKey(src []byte) (Decimal, int, error) {
	size, err := KeySize(src)
	if err != nil {
		return Decimal{}, 0, err
	}
	flip, neg := byte(0), false
	switch src[0] {
	case keyNegInf:
		return NegInf, 1, nil
	case keyZero:
		return Decimal{}, 1, nil
	case keyInf:
		return Inf, 1, nil
	case keyNaN:
		return NaN, 1, nil
	case keyNegative:
		flip, neg = 0xff, true
	}
	exp := int(src[1]^flip)<<16 | int(src[2]^flip)<<8 | int(src[3]^flip) - keyExpBias
	pairs := src[4:size]
	digits := 2 * len(pairs)
	last := (pairs[len(pairs)-1] ^ flip) >> 1
	if last%10 == 0 {
		digits--
	}
	scale := digits - exp
	if len(pairs) > maxBigBytes*2 || scale > MaxScale || exp > MaxIntegerDigits {
		return Decimal{}, 0, errBinary
	}
	if digits <= 38 {
		var u u128
		for i, p := range pairs {
			p = (p ^ flip) >> 1
			if p > 99 {
				return Decimal{}, 0, errBinary
			}
			m := uint64(100)
			if i == len(pairs)-1 && last%10 == 0 {
				m, p = 10, p/10
			}
			u, _ = u.mul64(m)
			u, _ = u.add(u128{0, uint64(p)})
		}
		if u.isZero() {
			return Decimal{}, 0, errBinary
		}
		d := from128(u, neg, max(scale, 0))
		if scale < 0 {
			d, err = d.times10(-scale)
		}
		return d, size, err
	}
	text := make([]byte, 0, digits+1)
	for _, p := range pairs {
		p = (p ^ flip) >> 1
		if p > 99 {
			return Decimal{}, 0, errBinary
		}
		text = append(text, '0'+p/10, '0'+p%10)
	}
	z, ok := new(big.Int).SetString(string(text[:digits]), 10)
	if !ok {
		return Decimal{}, 0, errBinary
	}
	if scale < 0 {
		z.Mul(z, bigPow10(-scale))
		scale = 0
	}
	if neg {
		z.Neg(z)
	}
	d, err := fromBig(z, scale)
	return d, size, err
}

// Hash is a hash that equal values share.
func (d *Decimal) Hash() uint64 {
	if !small64s(d, d) {
		return d.Reduce().hash()
	}
	x, scale := int64(d.lo), d.scale
	if x == 0 {
		scale = 0
	}
	for scale > 0 { // without the zeros at the end of the fraction
		q := x / 10
		if q*10 != x {
			break
		}
		x = q
		scale--
	}
	return hash128(x>>63, uint64(x), scale, finite)
}

// hash is Hash of a number without zeros at the end of the fraction.
func (d Decimal) hash() uint64 {
	if d.big != nil {
		h := uint64(d.big.Sign()) + uint64(d.scale)
		for _, w := range d.big.Bits() {
			h = mix(h^uint64(w), 0x9e3779b97f4a7c15)
		}
		return h
	}
	return hash128(d.hi, d.lo, d.scale, d.form)
}

func hash128(hi int64, lo uint64, scale uint16, f form) uint64 {
	return mix(lo^uint64(scale)<<48^uint64(f)<<40^0xa0761d6478bd642f, uint64(hi)^0xe7037ed1a0b428db)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
