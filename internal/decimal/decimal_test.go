package decimal_test

import (
	"bytes"
	"flag"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one")

func newRand(tb testing.TB) *rand.Rand {
	tb.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("run again with -seed=%d", s)
		}
	})
	return rand.New(rand.NewPCG(s, 1))
}

// random is a number around the borders of 64 and 128 bits as often as anywhere else.
func random(r *rand.Rand) decimal.Decimal {
	z := new(big.Int)
	switch r.IntN(4) {
	case 0:
		z.SetInt64(int64(r.Uint64()) >> r.IntN(64))
	case 1:
		z.Lsh(big.NewInt(1), []uint{62, 63, 64, 126, 127, 128}[r.IntN(6)])
		z.Add(z, big.NewInt(int64(r.IntN(5)-2)))
	case 2:
		for range 1 + r.IntN(4) {
			z.Lsh(z, 64).Or(z, new(big.Int).SetUint64(r.Uint64()))
		}
		z.Rsh(z, uint(r.IntN(64)))
	case 3:
		z.Exp(big.NewInt(10), big.NewInt(int64(r.IntN(45))), nil)
		z.Add(z, big.NewInt(int64(r.IntN(3)-1)))
	}
	if r.IntN(2) == 0 {
		z.Neg(z)
	}
	d, err := decimal.Parse(z.String() + "e-" + strconv.Itoa(r.IntN(45)))
	if err != nil {
		panic(err)
	}
	return d
}

func rat(t *testing.T, d decimal.Decimal) *big.Rat {
	t.Helper()
	q, ok := new(big.Rat).SetString(d.String())
	if !ok {
		t.Fatalf("%s is no number", d)
	}
	return q
}

// TestArithmeticIsExact compares with rational numbers, across the border between 128 bits and big integers.
func TestArithmeticIsExact(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	for range 6000 {
		a, b := random(r), random(r)
		x, y := rat(t, a), rat(t, b)
		check := func(op string, got decimal.Decimal, err error, want *big.Rat, scale int) {
			t.Helper()
			if err != nil || rat(t, got).Cmp(want) != 0 || got.Scale() != scale {
				t.Fatalf("%s %s %s = %s (%v), want %s with scale %d", a, op, b, got, err, want.FloatString(scale), scale)
			}
			if back, err := decimal.Parse(got.String()); err != nil || back.String() != got.String() || back.Cmp(got) != 0 {
				t.Fatalf("%s reads back as %s, %v", got, back, err)
			}
		}
		big2 := max(a.Scale(), b.Scale())
		s, err := a.Add(b)
		check("+", s, err, new(big.Rat).Add(x, y), big2)
		s, err = a.Sub(b)
		check("-", s, err, new(big.Rat).Sub(x, y), big2)
		s, err = a.Mul(b)
		check("*", s, err, new(big.Rat).Mul(x, y), a.Scale()+b.Scale())
		if c := a.Cmp(b); (c < 0) != (x.Cmp(y) < 0) || (c == 0) != (x.Cmp(y) == 0) {
			t.Fatalf("%s compared with %s: %d", a, b, c)
		}
		if !b.IsZero() {
			// Rounded half away from zero at the scale that was chosen: FloatString does the same.
			s, err = a.Div(b)
			if err != nil {
				t.Fatal(err)
			}
			want := new(big.Rat).Quo(x, y).FloatString(s.Scale())
			if strings.Trim(want, "-0.") == "" {
				want = strings.TrimPrefix(want, "-")
			}
			if s.String() != want {
				t.Fatalf("%s / %s = %s, want %s", a, b, s, want)
			}
		}
	}
}

// TestEncodings: the binary form keeps everything, the key form orders as values do.
func TestEncodings(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	values := []decimal.Decimal{decimal.NaN, decimal.Inf, decimal.NegInf, {}, decimal.FromInt64(-1), decimal.FromInt64(100)}
	for range 200 {
		values = append(values, random(r))
	}
	for _, a := range values {
		enc := a.AppendBinary(nil)
		back, n, err := decimal.Decode(append(enc, 1, 2, 3))
		if err != nil || n != len(enc) || back.String() != a.String() {
			t.Fatalf("binary: %s comes back as %s (%d of %d bytes, %v)", a, back, n, len(enc), err)
		}
		wire := a.AppendWire(nil)
		if back, err = decimal.FromWire(wire); err != nil || back.String() != a.String() {
			t.Fatalf("wire: %s comes back as %s, %v", a, back, err)
		}
		key := a.AppendKey(nil)
		back, n, err = decimal.DecodeKey(append(key, 0xff, 0))
		if err != nil || n != len(key) || back.Cmp(a) != 0 || back.String() != a.Reduce().String() {
			t.Fatalf("key: %s comes back as %s (%d of %d bytes, %v)", a, back, n, len(key), err)
		}
		for _, b := range values {
			c, k := a.Cmp(b), bytes.Compare(key, b.AppendKey(nil))
			if (c < 0) != (k < 0) || (c > 0) != (k > 0) {
				t.Fatalf("%s and %s: values compare %d, keys %d", a, b, c, k)
			}
			if c == 0 && a.Hash() != b.Hash() {
				t.Fatalf("%s and %s are equal and hash differently", a, b)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	most, err := decimal.Parse("1e131071")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"1e131072":         func() error { _, err := decimal.Parse("1e131072"); return err },
		"1e-16384":         func() error { _, err := decimal.Parse("1e-16384"); return err },
		"product too wide": func() error { _, err := most.Mul(decimal.FromInt64(10)); return err },
		"sum too wide": func() error {
			x, _ := decimal.Parse("9" + strings.Repeat("9", 131071))
			_, err := x.Add(decimal.FromInt64(1))
			return err
		},
		"exp":   func() error { _, err := decimal.FromInt64(6000).Exp(); return err },
		"power": func() error { _, err := decimal.FromInt64(10).Power(decimal.FromInt64(200000)); return err },
	} {
		if err := f(); pgerr.Code(err) != pgerr.NumericValueOutOfRange {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decimal.FromInt64(1).Div(decimal.Decimal{}); pgerr.Code(err) != pgerr.DivisionByZero {
		t.Errorf("1 / 0: %v", err)
	}
	_, err = mustParse("1000").Fit(5, 2)
	if e := pgerr.From(err); e.Code != "22003" || e.Detail != "A field with precision 5, scale 2 must round to an absolute value less than 10^3." {
		t.Errorf("numeric(5,2): %+v", e)
	}
	if s, err := mustParse("99.999").Mul(mustParse("0." + strings.Repeat("3", 16383))); err != nil || s.Scale() != decimal.MaxScale {
		t.Errorf("a product's scale is cut to the largest: %d, %v", s.Scale(), err)
	}
}

func mustParse(s string) decimal.Decimal {
	d, err := decimal.Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestSmallValuesDoNotAllocate(t *testing.T) {
	a, b := mustParse("12345.67"), mustParse("-0.125")
	buf := make([]byte, 0, 64)
	text := []byte("3141.59")
	if n := testing.AllocsPerRun(100, func() {
		c, _ := a.Add(b)
		c, _ = c.Mul(b)
		c, _ = c.Div(a)
		c, _ = c.Round(3)
		buf = c.Append(buf[:0])
		buf = c.AppendBinary(buf[:0])
		buf = c.AppendKey(buf[:0])
		_, _ = decimal.ParseBytes(text)
		_ = c.Cmp(a)
	}); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"0", "1.00", "-123456789012345678901234567890.5", "NaN", "1e50"} {
		d := mustParse(s)
		f.Add(d.AppendBinary(nil))
		f.Add(d.AppendKey(nil))
		f.Add(d.AppendWire(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, _, err := decimal.Decode(data); err == nil {
			_ = d.String()
			_ = d.AppendKey(nil)
		}
		if d, _, err := decimal.DecodeKey(data); err == nil {
			if back, _, err := decimal.DecodeKey(d.AppendKey(nil)); err != nil || back.Cmp(d) != 0 {
				t.Fatalf("%s does not come back: %v", d, err)
			}
		}
		if d, err := decimal.FromWire(data); err == nil {
			if back, err := decimal.FromWire(d.AppendWire(nil)); err != nil || back.String() != d.String() {
				t.Fatalf("%s does not come back: %v", d, err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", " 1.50 ", "-.5e-3", "1e131071", "NaN", "inf", "1e", "--1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := decimal.Parse(s)
		if err != nil {
			return
		}
		if back, err := decimal.Parse(d.String()); err != nil || back.String() != d.String() {
			t.Fatalf("%q: %s does not come back: %v", s, d, err)
		}
	})
}

var sink decimal.Decimal

func BenchmarkAdd(b *testing.B) {
	x, y := mustParse("12345.67"), mustParse("1.25")
	b.ReportAllocs()
	for b.Loop() {
		x, _ = x.Add(y)
	}
	sink = x
}

func BenchmarkAddScales(b *testing.B) {
	x, y := mustParse("12345.67"), mustParse("1.2525")
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = x.Add(y)
	}
}

func BenchmarkMul(b *testing.B) {
	x, y := mustParse("12345.67"), mustParse("0.908")
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = x.Mul(y)
	}
}

func BenchmarkDiv(b *testing.B) {
	x, y := mustParse("12345.67"), mustParse("7")
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = x.Div(y)
	}
}

func BenchmarkCmp(b *testing.B) {
	x, y := mustParse("12345.67"), mustParse("12345.68")
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n += x.Cmp(y)
	}
	_ = n
}

func BenchmarkAppend(b *testing.B) {
	x := mustParse("12345.67")
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = x.Append(buf[:0])
	}
}

func BenchmarkParse(b *testing.B) {
	s := []byte("12345.67")
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = decimal.ParseBytes(s)
	}
}
