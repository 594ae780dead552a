package expr

// clockFunctions are what depends on the time of the statement or epoch.
var clockFunctions = []Overload{
	clock("now"), clock("current_timestamp"), clock("transaction_timestamp"), clock("statement_timestamp"),
}

// clock is the recorded time: one value a statement or an epoch, so that a replay gives the same.
func clock(name string) Overload {
	return Overload{Name: name, Result: tTimestamptz, Volatility: Stable, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			for _, row := range c.Rows() {
				c.Out.I64[row] = c.Ctx.Now
			}
		}, nil
	}}
}
