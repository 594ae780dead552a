package decimal

import "github.com/leat-io/leat/internal/pgerr"

var (
	errOverflow  error = pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
	errDivZero   error = pgerr.New(pgerr.DivisionByZero, "division by zero")
	errSqrt      error = pgerr.New(pgerr.InvalidArgumentForPowerFunction, "cannot take square root of a negative number")
	errLogZero   error = pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of zero")
	errLogNeg    error = pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of a negative number")
	errPowerZero error = pgerr.New(pgerr.InvalidArgumentForPowerFunction, "zero raised to a negative power is undefined")
	errPowerNeg  error = pgerr.New(pgerr.InvalidArgumentForPowerFunction, "a negative number raised to a non-integer power yields a complex result")
)
