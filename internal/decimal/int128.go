package decimal

// FromInt128 is the two's complement integer hi:lo times 10^-scale, for accumulators that add in 128 bits. The lowest 128-bit
// integer is not a value.
func FromInt128(hi int64, lo uint64, scale int) Decimal {
	return Decimal{hi: hi, lo: lo, scale: uint16(scale)}
}

// Int128 returns the coefficient of a number that fits 128 bits, and its scale.
func (d Decimal) Int128() (hi int64, lo uint64, scale int, ok bool) {
	return d.hi, d.lo, int(d.scale), d.form == finite && d.big == nil
}
