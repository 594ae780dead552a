package pgtype

import "math"

// Units of time in microseconds.
const (
	microsPerSecond = 1_000_000
	microsPerMinute = 60 * microsPerSecond
	microsPerHour   = 60 * microsPerMinute
	microsPerDay    = 24 * microsPerHour
)

// PostgreSQL's calendar starts at Julian day 0, 4714-11-24 BC. Dates end with the year 5874897, timestamps where microseconds since 1970
// leave 64 bits (PostgreSQL's end 30 years later, in 294276).
var (
	minDay          = int64(Days(-4713, 11, 24))
	maxDay          = int64(Days(5874897, 12, 31))
	minMicros       = minDay * microsPerDay
	maxMicros int64 = math.MaxInt64 - 1
)

// Days is the number of days since 1970-01-01 of a date of the proleptic Gregorian calendar; year 0 is 1 BC. The month is 1 to 12,
// the day may be beyond its end.
func Days(year, month, day int) int32 {
	y := int64(year)
	if month <= 2 {
		y--
		month += 12
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	doy := int64((153*(month-3)+2)/5 + day - 1)
	return int32(era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468)
}

// Civil is the date of a number of days since 1970-01-01; year 0 is 1 BC.
func Civil(days int32) (year, month, day int) {
	z := int64(days) + 719468
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	m := (5*doy + 2) / 153
	day = int(doy - (153*m+2)/5 + 1)
	month = int(m + 3)
	if month > 12 {
		month -= 12
	}
	year = int(yoe + era*400)
	if month <= 2 {
		year++
	}
	return year, month, day
}

// IsLeap reports whether a year (0 is 1 BC) has 366 days.
func IsLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// MonthDays is the number of days of a month.
func MonthDays(year, month int) int {
	switch month {
	case 2:
		if IsLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// SplitMicros splits a timestamp, which is finite, into days and the microseconds of the day, 0 to 86,399,999,999.
func SplitMicros(us int64) (days int32, micros int64) {
	d := us / microsPerDay
	r := us % microsPerDay
	if r < 0 {
		d--
		r += microsPerDay
	}
	return int32(d), r
}

// TimestampInRange reports whether a number of microseconds is a finite timestamp.
func TimestampInRange(us int64) bool { return us >= minMicros && us <= maxMicros }

// DateInRange reports whether a number of days is a finite date.
func DateInRange(days int64) bool { return days >= minDay && days <= maxDay }
