package nexmark

import "math"

// random is Java's SplittableRandom (JDK 17) with its default gamma: the state moves by a constant, each draw is a mix of the state.
type random uint64

const gamma = 0x9E3779B97F4A7C15

func (r *random) next() uint64 {
	*r += gamma
	return uint64(*r)
}

// skip passes over n draws.
func (r *random) skip(n int) { *r += random(n) * gamma }

func (r *random) int32() int32 {
	z := r.next()
	z = (z ^ z>>33) * 0x62A9D9ED799705F5
	z = (z ^ z>>28) * 0xCB24D0A5C88C35B3
	return int32(z >> 32)
}

func (r *random) int64() int64 {
	z := r.next()
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return int64(z ^ z>>31)
}

// below returns a number from 0 to n-1; n is positive.
func (r *random) below(n int32) int32 {
	v := r.int32()
	if n&(n-1) == 0 {
		return v & (n - 1)
	}
	return r.folded(v, n)
}

// fold makes a number from 0 to n-1 of the draw v, where n is no power of two. It is not ok for the few draws that would make some numbers more likely
// than others: folded draws again then. It stands within loops, and a constant n needs no division there.
func fold(v, n int32) (x int32, ok bool) {
	u := int32(uint32(v) >> 1)
	x = u % n
	return x, u-x <= math.MaxInt32-(n-1)
}

// folded is fold with as many draws as it takes.
func (r *random) folded(v, n int32) int32 {
	for {
		if x, ok := fold(v, n); ok {
			return x
		}
		v = r.int32()
	}
}

func (r *random) double() float64 {
	return float64(uint64(r.int64())>>11) * (1.0 / (1 << 53))
}
