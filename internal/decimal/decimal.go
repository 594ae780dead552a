// Package decimal is PostgreSQL's numeric: any number of digits, a display scale per value, NaN and both infinities.
// Values of up to 38 digits live in 128 bits and need no allocation; larger ones hold a big.Int.
package decimal

import "math/big"

// Decimal is coefficient * 10^-scale. The zero value is 0 with scale 0. Values are immutable.
type Decimal struct {
	hi    int64 // with lo: the coefficient in two's complement when big is nil
	lo    uint64
	big   *big.Int
	scale uint16 // digits after the point, PostgreSQL's dscale
	form  form
}

type form uint8

const (
	finite form = iota
	nan
	infinite
	negInfinite
)
