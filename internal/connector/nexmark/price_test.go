package nexmark

import (
	"math"
	"testing"
)

// TestPrices: what exp2 makes of a draw is what math.Pow makes of it, and exp2 is as exact as that takes.
func TestPrices(t *testing.T) {
	t.Parallel()
	r := random(7)
	for range 500_000 {
		again := r
		if got, want := drawPrice(&r), exactPrice(again.double()*6); got != want {
			t.Fatalf("a price is %d, not %d", got, want)
		}
	}
	for range 500_000 {
		x := r.double() * 20
		if got, want := exp2(x), math.Exp2(x); math.Abs(got/want-1) > 1e-14 {
			t.Fatalf("2^%v is %v, not %v", x, got, want)
		}
	}
}
