package expr

import (
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

const (
	usPerDay = 86_400_000_000

	// The ends of PostgreSQL's timestamps: 4714-11-24 BC, and 294277-01-01, which is excluded.
	minTimestamp = -210_866_803_200_000_000
	endTimestamp = 9_224_318_016_000_000_000
)

var (
	errDateForTimestamp = pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range for timestamp")
	errTimestampRange   = pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range")
)

// infinite tells whether a timestamp is one of the infinities.
func infinite(us int64) bool {
	return us == column.TimestampInfinity || us == column.TimestampNegInfinity
}

// floorDiv divides towards minus infinity.
func floorDiv(x, y int64) (q, r int64) {
	q, r = x/y, x%y
	if r < 0 {
		q, r = q-1, r+y
	}
	return q, r
}

// toLocal is what clocks in the zone show at an instant.
func toLocal(us int64, zone *time.Location) int64 {
	if infinite(us) {
		return us
	}
	return pgtype.ToLocal(us, zone)
}

// fromLocal is the instant at which clocks in the zone show us.
func fromLocal(us int64, zone *time.Location) int64 {
	if infinite(us) {
		return us
	}
	return pgtype.ToUTC(us, zone)
}

// dateToTimestamp is the start of a day.
func dateToTimestamp(days int32) (int64, *pgerr.Error) {
	switch days {
	case column.DateInfinity:
		return column.TimestampInfinity, nil
	case column.DateNegInfinity:
		return column.TimestampNegInfinity, nil
	}
	if d := int64(days); d >= endTimestamp/usPerDay || d < minTimestamp/usPerDay {
		return 0, errDateForTimestamp
	}
	return int64(days) * usPerDay, nil
}

func timestampToDate(us int64) int32 {
	switch us {
	case column.TimestampInfinity:
		return column.DateInfinity
	case column.TimestampNegInfinity:
		return column.DateNegInfinity
	}
	d, _ := floorDiv(us, usPerDay)
	return int32(d)
}

// convertTime are the casts among date, time, timestamps and interval.
func convertTime(from, to column.Kind) Kernel {
	switch {
	case from == column.Date:
		return func(c *Call) {
			out, a, zone := c.Out.I64, c.Int32s(0), c.Ctx.zone()
			for _, row := range c.Rows() {
				us, err := dateToTimestamp(a.At(row))
				if err != nil {
					c.Fail(row, err)
					continue
				}
				if to == column.Timestamptz {
					us = fromLocal(us, zone)
				}
				out[row] = us
			}
		}
	case from == column.Time && to == column.IntervalKind:
		return func(c *Call) {
			out, a := c.Out.Iv, c.Int64s(0)
			for _, row := range c.Rows() {
				out[row] = column.Interval{Micros: a.At(row)}
			}
		}
	case from == column.IntervalKind && to == column.Time:
		return func(c *Call) {
			out, a := c.Out.I64, c.Intervals(0)
			for _, row := range c.Rows() {
				_, out[row] = floorDiv(a.At(row).Micros, usPerDay)
			}
		}
	case from != column.Timestamp && from != column.Timestamptz:
		return nil
	case to == column.Date:
		return func(c *Call) {
			out, a, zone := c.Out.I32, c.Int64s(0), c.zoneOf(from)
			for _, row := range c.Rows() {
				out[row] = timestampToDate(toLocal(a.At(row), zone))
			}
		}
	case to == column.Time:
		return func(c *Call) {
			out, a, zone := c.Out.I64, c.Int64s(0), c.zoneOf(from)
			for _, row := range c.Rows() {
				us := a.At(row)
				if infinite(us) {
					c.Null(row)
					continue
				}
				_, out[row] = floorDiv(toLocal(us, zone), usPerDay)
			}
		}
	case to == column.Timestamptz:
		return func(c *Call) {
			out, a, zone := c.Out.I64, c.Int64s(0), c.Ctx.zone()
			for _, row := range c.Rows() {
				out[row] = fromLocal(a.At(row), zone)
			}
		}
	case to == column.Timestamp:
		return func(c *Call) {
			out, a, zone := c.Out.I64, c.Int64s(0), c.Ctx.zone()
			for _, row := range c.Rows() {
				out[row] = toLocal(a.At(row), zone)
			}
		}
	}
	return nil
}

// zoneOf is the zone that a kind of timestamp is shown in.
func (c *Call) zoneOf(k column.Kind) *time.Location {
	if k == column.Timestamptz {
		return c.Ctx.zone()
	}
	return time.UTC
}
