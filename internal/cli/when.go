package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// whenHelp says what parseWhen reads.
const whenHelp = `A time is RFC 3339 (2026-01-31T09:00:00Z), a date or a date and time of the local zone (2026-01-31, "2026-01-31 09:00"),
seconds or milliseconds since 1970 after an @, "now", "today" and "yesterday" (their midnight), "last hour|day|week|month|year"
(that long ago), "2 hours ago", or a negative length of time (-24h, -90m, -7d, -2w).`

var (
	lengths    = regexp.MustCompile(`(\d+)(ms|[smhdw])`)
	length     = regexp.MustCompile(`^(?:\d+(?:ms|[smhdw]))+$`)
	wordedTime = regexp.MustCompile(`^(\d+|an?) (second|minute|hour|day|week|month|year)s? ago$`)
)

// parseWhen reads a point in time as people write them; now is in the zone that dates without one are in.
func parseWhen(text string, now time.Time) (time.Time, error) {
	s := strings.Join(strings.Fields(text), " ")
	lower := strings.ToLower(s)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch lower {
	case "now":
		return now, nil
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	if unit, ok := strings.CutPrefix(lower, "last "); ok {
		if t, ok := before(now, 1, unit); ok {
			return t, nil
		}
	}
	if m := wordedTime.FindStringSubmatch(lower); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil && m[1][0] == 'a' {
			n, err = 1, nil
		}
		if t, ok := before(now, n, m[2]); ok && err == nil && n < 1_000_000 {
			return t, nil
		}
	}
	if ago, ok := strings.CutPrefix(lower, "-"); ok && length.MatchString(ago) {
		if d, ok := parseLength(ago); ok {
			return now.Add(-d), nil
		}
	}
	if number, ok := strings.CutPrefix(s, "@"); ok {
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			if len(number) <= 10 { // until the year 2286; milliseconds have had 13 digits since 2001
				return time.Unix(n, 0), nil
			}
			return time.UnixMilli(n), nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; such are 2026-01-31T09:00:00Z, 2026-01-31, yesterday, \"last week\", \"2 hours ago\", -24h and @1769850000", text)
}

func before(now time.Time, n int, unit string) (time.Time, bool) {
	switch unit {
	case "second":
		return now.Add(-time.Duration(n) * time.Second), true
	case "minute":
		return now.Add(-time.Duration(n) * time.Minute), true
	case "hour":
		return now.Add(-time.Duration(n) * time.Hour), true
	case "day":
		return now.AddDate(0, 0, -n), true
	case "week":
		return now.AddDate(0, 0, -7*n), true
	case "month":
		return now.AddDate(0, -n, 0), true
	case "year":
		return now.AddDate(-n, 0, 0), true
	}
	return time.Time{}, false
}

// parseLength reads 1d12h30m; a day has 24 hours.
func parseLength(s string) (time.Duration, bool) {
	units := map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}
	total := time.Duration(0)
	for _, m := range lengths.FindAllStringSubmatch(s, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		unit := units[m[2]]
		if err != nil || n > int64((1<<62)/unit) {
			return 0, false
		}
		if total += time.Duration(n) * unit; total < 0 {
			return 0, false
		}
	}
	return total, true
}
