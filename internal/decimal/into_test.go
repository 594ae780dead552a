package decimal

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
)

// TestCommonCases compares the short ways with the long ones.
func TestCommonCases(t *testing.T) {
	t.Parallel()
	s := rand.Uint64()
	t.Logf("seed %d", s)
	r := rand.New(rand.NewPCG(s, s))
	edges := []int64{0, 1, -1, 9, 10, math.MaxInt64, math.MinInt64, 1e18, -1e18, 123456789}
	pick := func() Decimal {
		x := edges[r.IntN(len(edges))]
		if r.IntN(2) == 0 {
			x = int64(r.Uint64()) >> r.IntN(64)
		}
		d, err := New(x, r.IntN(25))
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(20) == 0 {
			d, _ = Parse([]string{"NaN", "Infinity", "-Infinity", "1e60"}[r.IntN(4)])
		}
		return d
	}
	short := 0
	var bound Bound
	for range 100_000 {
		a, b, dst := pick(), pick(), pick()
		if r.IntN(2) == 0 {
			b, _ = b.Round(a.Scale())
		}
		for name, f := range map[string]struct {
			short func(dst, a, b *Decimal) bool
			long  func(a, b Decimal) (Decimal, error)
		}{"*": {MulInto, Decimal.Mul}, "+": {AddInto, Decimal.Add}, "-": {SubInto, Decimal.Sub}} {
			if !f.short(&dst, &a, &b) {
				continue
			}
			short++
			if want, err := f.long(a, b); err != nil || dst.String() != want.String() {
				t.Fatalf("%s %s %s: got %s, want %s (%v)", a, name, b, dst, want, err)
			}
		}
		bound.Set(b)
		for _, x := range []*Decimal{&a, &b, &dst, &a} {
			c := bound.Cmp(x)
			if near, at, ok := bound.Near(x); ok && cmp.Compare(near, at) != c || c != x.Cmp(b) {
				t.Fatalf("%s <=> bound %s: got %d and %d to %d (%t), want %d", x, b, c, near, at, ok, x.Cmp(b))
			}
		}
		if c, ok := CmpSmall(&a, &b); ok && c != a.Cmp(b) {
			t.Fatalf("%s <=> %s: got %d, want %d", a, b, c, a.Cmp(b))
		}
	}
	if short < 10_000 {
		t.Errorf("only %d short cases", short)
	}
}
