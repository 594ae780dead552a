package nexmark

import "math"

// steps is how finely exp2's table divides an octave.
const (
	stepBits = 10
	steps    = 1 << stepBits
)

var octave = func() (t [steps]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / steps)
	}
	return t
}()

// exp2 is 2^x for x from 0 to 1000 with a relative error below 1e-14: a table, and a polynomial for the rest of up to 1/2048.
func exp2(x float64) float64 {
	i := int64(x*steps + 0.5)
	f := (x - float64(i)*(1.0/steps)) * math.Ln2
	p := 1 + f + f*f*(1.0/2+f*(1.0/6))
	return octave[i&(steps-1)] * p * math.Float64frombits(uint64(1023+i>>stepBits)<<52)
}

// log2of10 is log2(10).
const log2of10 = math.Ln10 / math.Ln2

// drawPrice draws a price in cents: floor(10^(6u) * 100 + 0.5) as math.Pow gives it. exp2 is exact enough for the floor unless the value lies
// next to a whole number; then math.Pow decides.
func drawPrice(r *random) int64 {
	y := r.double() * 6
	v := exp2(y*log2of10)*100 + 0.5
	whole := int64(v)
	if margin, part := v*1e-12, v-float64(whole); part > margin && part < 1-margin {
		return whole
	}
	return exactPrice(y)
}

func exactPrice(y float64) int64 {
	p := math.Pow(10, y)
	return int64(math.Floor(float64(p*100) + 0.5))
}
