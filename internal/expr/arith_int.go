package expr

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// integer is a type of vectors of smallint, integer and bigint.
type integer interface{ int16 | int32 | int64 }

var (
	errInt2Range = pgerr.New(pgerr.NumericValueOutOfRange, "smallint out of range")
	errInt4Range = pgerr.New(pgerr.NumericValueOutOfRange, "integer out of range")
	errInt8Range = pgerr.New(pgerr.NumericValueOutOfRange, "bigint out of range")
	errDivZero   = pgerr.New(pgerr.DivisionByZero, "division by zero")
)

func rangeError[T integer]() *pgerr.Error {
	switch unsafe.Sizeof(T(0)) {
	case 2:
		return errInt2Range
	case 4:
		return errInt4Range
	}
	return errInt8Range
}

func minOf[T integer]() T { return T(-1) << (8*unsafe.Sizeof(T(0)) - 1) }

// slice is the typed slice of a vector of integers.
func slice[T integer](v *column.Vector) []T {
	switch unsafe.Sizeof(T(0)) {
	case 2:
		return any(v.I16).([]T)
	case 4:
		return any(v.I32).([]T)
	}
	return any(v.I64).([]T)
}

var integerArithmetic = func() []Overload {
	var out []Overload
	out = append(out, integerOverloads[int16](tInt2)...)
	out = append(out, integerOverloads[int32](tInt4)...)
	out = append(out, integerOverloads[int64](tInt8)...)
	// PostgreSQL's operators of mixed widths give the wider type.
	for _, op := range []string{"+", "-", "*", "/"} {
		for _, p := range [][2]column.Type{{tInt2, tInt4}, {tInt2, tInt8}, {tInt4, tInt8}} {
			wide := []column.Type{p[1], p[1]}
			out = append(out,
				Overload{Name: op, Args: []column.Type{p[0], p[1]}, Result: p[1], via: wide},
				Overload{Name: op, Args: []column.Type{p[1], p[0]}, Result: p[1], via: wide})
		}
	}
	return out
}()

func integerOverloads[T integer](t column.Type) []Overload {
	two, one := []column.Type{t, t}, []column.Type{t}
	binary := func(name string, dense bool, kernel func(c *Call, a, b []T, out []T)) Overload {
		return Overload{Name: name, Args: two, Result: t, dense: dense, Make: func(*Site) (Kernel, error) {
			return func(c *Call) { kernel(c, slice[T](c.Args[0]), slice[T](c.Args[1]), slice[T](c.Out)) }, nil
		}}
	}
	unary := func(name string, kernel func(c *Call, a, out []T)) Overload {
		return Overload{Name: name, Args: one, Result: t, Make: func(*Site) (Kernel, error) {
			return func(c *Call) { kernel(c, slice[T](c.Args[0]), slice[T](c.Out)) }, nil
		}}
	}
	total := func(o Overload) Overload {
		o.Total = true
		return o
	}
	shift := func(name string, kernel func(c *Call, a []T, b Col[int32], out []T)) Overload {
		return Overload{Name: name, Args: []column.Type{t, tInt4}, Result: t, Total: true, Make: func(*Site) (Kernel, error) {
			return func(c *Call) { kernel(c, slice[T](c.Args[0]), c.Int32s(1), slice[T](c.Out)) }, nil
		}}
	}
	out := []Overload{
		binary("+", true, addInts[T]),
		binary("-", true, subInts[T]),
		binary("*", true, mulInts[T]),
		binary("/", false, divInts[T]),
		binary("%", false, modInts[T]),
		binary("mod", false, modInts[T]),
		total(binary("&", false, func(c *Call, a, b, out []T) { bitInts(c, '&', a, b, out) })),
		total(binary("|", false, func(c *Call, a, b, out []T) { bitInts(c, '|', a, b, out) })),
		total(binary("#", false, func(c *Call, a, b, out []T) { bitInts(c, '#', a, b, out) })),
		unary("-", negInts[T]),
		unary("abs", absInts[T]),
		unary("@", absInts[T]),
		total(unary("~", func(c *Call, a, out []T) {
			for _, row := range c.Rows() {
				out[row] = ^a[row]
			}
		})),
		total(unary("+", func(c *Call, a, out []T) {
			for _, row := range c.Rows() {
				out[row] = a[row]
			}
		})),
		shift("<<", func(c *Call, a []T, b Col[int32], out []T) {
			m := c.mask(0)
			for _, row := range c.Rows() {
				out[row] = T(int64(a[int(row)&m]) << shiftCount[T](b.At(row)))
			}
		}),
		shift(">>", func(c *Call, a []T, b Col[int32], out []T) {
			m := c.mask(0)
			for _, row := range c.Rows() {
				out[row] = a[int(row)&m] >> shiftCount[T](b.At(row))
			}
		}),
	}
	if t.Kind != column.Int16 {
		out = append(out, binary("gcd", false, gcdInts[T]), binary("lcm", false, lcmInts[T]))
	}
	return out
}

// shiftCount is what the hardware that PostgreSQL runs on makes of a shift's count.
func shiftCount[T integer](n int32) uint32 {
	if unsafe.Sizeof(T(0)) == 8 {
		return uint32(n) & 63
	}
	return uint32(n) & 31
}

// addInts and the others compute all rows in a loop without branches, and look closer only if a row went wrong.
func addInts[T integer](c *Call, a, b, out []T) {
	var bad T
	switch {
	case c.Sel != nil:
		for _, row := range c.Sel {
			x, y := a[int(row)&c.mask(0)], b[int(row)&c.mask(1)]
			s := x + y
			out[row] = s
			bad |= (s ^ x) & (s ^ y)
		}
	case c.Const[0] == c.Const[1]:
		a, b = a[:len(out)], b[:len(out)]
		for i := range out {
			s := a[i] + b[i]
			out[i] = s
			bad |= (s ^ a[i]) & (s ^ b[i])
		}
	default:
		if c.Const[0] {
			a, b = b, a
		}
		a, k := a[:len(out)], b[0]
		for i := range out {
			s := a[i] + k
			out[i] = s
			bad |= (s ^ a[i]) & (s ^ k)
		}
	}
	if bad < 0 {
		a, b := slice[T](c.Args[0]), slice[T](c.Args[1])
		for _, row := range c.wanted() {
			x, y := a[int(row)&c.mask(0)], b[int(row)&c.mask(1)]
			if s := x + y; (s^x)&(s^y) < 0 {
				c.Fail(row, rangeError[T]())
			}
		}
	}
}

func subInts[T integer](c *Call, a, b, out []T) {
	var bad T
	switch {
	case c.Sel != nil:
		for _, row := range c.Sel {
			x, y := a[int(row)&c.mask(0)], b[int(row)&c.mask(1)]
			s := x - y
			out[row] = s
			bad |= (x ^ y) & (s ^ x)
		}
	case c.Const[0] == c.Const[1]:
		a, b = a[:len(out)], b[:len(out)]
		for i := range out {
			s := a[i] - b[i]
			out[i] = s
			bad |= (a[i] ^ b[i]) & (s ^ a[i])
		}
	case c.Const[1]:
		a, k := a[:len(out)], b[0]
		for i := range out {
			s := a[i] - k
			out[i] = s
			bad |= (a[i] ^ k) & (s ^ a[i])
		}
	default:
		k, b := a[0], b[:len(out)]
		for i := range out {
			s := k - b[i]
			out[i] = s
			bad |= (k ^ b[i]) & (s ^ k)
		}
	}
	if bad < 0 {
		for _, row := range c.wanted() {
			x, y := a[int(row)&c.mask(0)], b[int(row)&c.mask(1)]
			if s := x - y; (x^y)&(s^x) < 0 {
				c.Fail(row, rangeError[T]())
			}
		}
	}
}

// mulInts takes products of numbers of half the width as they come, and checks all rows when there is a longer one.
func mulInts[T integer](c *Call, a, b, out []T) {
	half := 4 * unsafe.Sizeof(T(0)) // bits of half the width
	var long T                      // not 0 when a factor needs more than half the width
	switch {
	case c.Sel != nil:
		for _, row := range c.Sel {
			x, y := a[int(row)&c.mask(0)], b[int(row)&c.mask(1)]
			out[row] = x * y
			long |= (x>>(half-1) ^ x>>(2*half-1)) | (y>>(half-1) ^ y>>(2*half-1))
		}
	case c.Const[0] == c.Const[1]:
		a, b := a[:len(out)], b[:len(out)]
		for i := range out {
			x, y := a[i], b[i]
			out[i] = x * y
			long |= (x>>(half-1) ^ x>>(2*half-1)) | (y>>(half-1) ^ y>>(2*half-1))
		}
	default:
		v, k := a, b[0]
		if c.Const[0] {
			v, k = b, a[0]
		}
		v = v[:len(out)]
		// With a constant the range of the other factor is known.
		lo, hi := factorRange(k)
		for i := range out {
			x := v[i]
			out[i] = x * k
			if x < lo || x > hi {
				long = 1
			}
		}
	}
	if long != 0 {
		for _, row := range c.wanted() {
			x, y := a[int(row)&c.mask(0)], b[int(row)&c.mask(1)]
			if !productFits(x, y) {
				c.Fail(row, rangeError[T]())
			}
		}
	}
}

// factorRange is what may be multiplied with k without overflow.
func factorRange[T integer](k T) (lo, hi T) {
	least := minOf[T]()
	most := ^least
	switch {
	case k == 0 || k == 1:
		return least, most
	case k == -1:
		return least + 1, most
	case k > 0:
		return least / k, most / k
	}
	return most / k, least / k
}

func productFits[T integer](x, y T) bool {
	if unsafe.Sizeof(x) < 8 {
		p := int64(x) * int64(y)
		return p == int64(T(p))
	}
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	// The signed high word, from the unsigned one.
	h := int64(hi) - int64(y)&(int64(x)>>63) - int64(x)&(int64(y)>>63)
	return h == int64(lo)>>63
}

func divInts[T integer](c *Call, a, b, out []T) {
	am, bm := c.mask(0), c.mask(1)
	if c.Const[1] {
		if k := b[0]; k != 0 && k != -1 {
			for _, row := range c.Rows() {
				out[row] = a[int(row)&am] / k
			}
			return
		}
	}
	for _, row := range c.Rows() {
		x, y := a[int(row)&am], b[int(row)&bm]
		switch {
		case y == 0:
			c.Fail(row, errDivZero)
		case y == -1:
			if x == minOf[T]() {
				c.Fail(row, rangeError[T]())
				continue
			}
			out[row] = -x
		default:
			out[row] = x / y
		}
	}
}

func modInts[T integer](c *Call, a, b, out []T) {
	am, bm := c.mask(0), c.mask(1)
	if c.Const[1] {
		if k := b[0]; k != 0 && k != -1 {
			for _, row := range c.Rows() {
				out[row] = a[int(row)&am] % k
			}
			return
		}
	}
	for _, row := range c.Rows() {
		switch x, y := a[int(row)&am], b[int(row)&bm]; y {
		case 0:
			c.Fail(row, errDivZero)
		case -1:
			out[row] = 0
		default:
			out[row] = x % y
		}
	}
}

func bitInts[T integer](c *Call, op byte, a, b, out []T) {
	am, bm := c.mask(0), c.mask(1)
	rows := c.Rows()
	switch op {
	case '&':
		for _, row := range rows {
			out[row] = a[int(row)&am] & b[int(row)&bm]
		}
	case '|':
		for _, row := range rows {
			out[row] = a[int(row)&am] | b[int(row)&bm]
		}
	case '#':
		for _, row := range rows {
			out[row] = a[int(row)&am] ^ b[int(row)&bm]
		}
	}
}

func negInts[T integer](c *Call, a, out []T) {
	for _, row := range c.Rows() {
		x := a[row]
		if x == minOf[T]() {
			c.Fail(row, rangeError[T]())
			continue
		}
		out[row] = -x
	}
}

func absInts[T integer](c *Call, a, out []T) {
	for _, row := range c.Rows() {
		x := a[row]
		if x < 0 {
			if x == minOf[T]() {
				c.Fail(row, rangeError[T]())
				continue
			}
			x = -x
		}
		out[row] = x
	}
}

// gcd of magnitudes.
func gcd(x, y uint64) uint64 {
	for y != 0 {
		x, y = y, x%y
	}
	return x
}

func magnitude[T integer](x T) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func gcdInts[T integer](c *Call, a, b, out []T) {
	am, bm := c.mask(0), c.mask(1)
	for _, row := range c.Rows() {
		g := gcd(magnitude(a[int(row)&am]), magnitude(b[int(row)&bm]))
		if g > uint64(^minOf[T]()) {
			c.Fail(row, rangeError[T]())
			continue
		}
		out[row] = T(g)
	}
}

func lcmInts[T integer](c *Call, a, b, out []T) {
	am, bm := c.mask(0), c.mask(1)
	for _, row := range c.Rows() {
		x, y := magnitude(a[int(row)&am]), magnitude(b[int(row)&bm])
		if x == 0 || y == 0 {
			out[row] = 0
			continue
		}
		hi, l := bits.Mul64(x/gcd(x, y), y)
		if hi != 0 || l > uint64(^minOf[T]()) || l > math.MaxInt64 {
			c.Fail(row, rangeError[T]())
			continue
		}
		out[row] = T(l)
	}
}
