package decimal

// Bound is a number that many others are compared with: it is brought to their scale once, not each time.
type Bound struct {
	of    Decimal
	scale uint16 // noScale: no numbers can be compared by their coefficients
	at    int64  // of, times 10^scale
	tried uint16 // the scale that was tried last
}

const noScale = 1<<16 - 1 // above MaxScale

// Set makes b the bound d.
func (b *Bound) Set(d Decimal) { *b = Bound{of: d, scale: noScale, tried: noScale} }

// Near gives two whole numbers that compare as d and the bound do, when that is simple; else Cmp has to be asked. It is small enough
// to stand within a loop.
func (b *Bound) Near(d *Decimal) (x, bound int64, ok bool) {
	return int64(d.lo), b.at, d.scale == b.scale && d.form == finite && d.big == nil && d.hi == int64(d.lo)>>63
}

// Cmp is -1, 0 or 1 as d is less than, equal to or greater than the bound. It makes Near know numbers of d's scale, if it can.
func (b *Bound) Cmp(d *Decimal) int {
	if d.scale != b.tried {
		b.rescale(d.scale)
	}
	return d.Cmp(b.of)
}

func (b *Bound) rescale(scale uint16) {
	b.scale, b.tried = noScale, scale
	up := int(scale) - int(b.of.scale)
	if up < 0 || up >= len(smallPow10) || !small64s(&b.of, &b.of) {
		return
	}
	hi, lo := mulSigned(int64(b.of.lo), smallPow10[up])
	if hi == int64(lo)>>63 {
		b.at, b.scale = int64(lo), scale
	}
}
