package flow

import "github.com/leat-io/leat/internal/decimal"

func mustDecimal(s string) decimal.Decimal {
	d, err := decimal.Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}
