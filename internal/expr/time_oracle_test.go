package expr

import (
	"slices"
	"strings"
	"testing"
)

var (
	sampleDates      = []string{"'2024-02-29'", "'1999-12-31'", "'2000-01-01'", "'1900-03-01'", "'0001-01-01'", "'0044-03-15 BC'", "'infinity'", "'-infinity'", "'5874897-12-31'", "'2021-01-03'", "'2026-12-28'"}
	sampleTimestamps = []string{
		"'2024-02-29 12:34:56.789012'", "'1999-12-31 23:59:59.999999'", "'2000-01-01 00:00:00'", "'1969-12-31 23:59:59.5'", "'0001-01-01 00:00:01'",
		"'0044-03-15 12:00:00 BC'", "'infinity'", "'-infinity'", "'2021-01-03 05:06:07'", "'4714-11-24 00:00:00 BC'", "'2023-03-26 02:30:00'", "'2023-10-29 02:30:00'",
	}
	sampleIntervals = []string{
		"'1 month'", "'-1 month'", "'1 year 2 mons 3 days 04:05:06.789'", "'30 days'", "'-1 day 24:00:00.5'", "'0'", "'1 mon -1 day'", "'100 years'",
		"'13 mons 45 days 36:00:00'", "'-13 mons 45 days -36:00:00'", "'0.000001 seconds'", "'178000000 years'",
	}
	sampleTimes = []string{"'00:00'", "'23:59:59.999999'", "'12:34:56.5'", "'24:00'"}
	allFields   = []string{
		"microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium", "julian",
		"isoyear", "dow", "isodow", "doy", "epoch", "timezone", "timezone_hour", "timezone_minute", "bogus", "YEAR", "mons",
	}
)

func cast(values []string, typ string) []string { return combine("%s::"+typ, values) }

// TestTimes compares operators and functions of dates, times and intervals.
func TestTimes(t *testing.T) {
	t.Parallel()
	var exprs []string
	add := func(format string, lists ...[]string) { exprs = append(exprs, combine(format, lists...)...) }
	dates, stamps, instants := cast(sampleDates, "date"), cast(sampleTimestamps, "timestamp"), cast(sampleTimestamps, "timestamptz")
	spans, times := cast(sampleIntervals, "interval"), cast(sampleTimes, "time")
	add("%s %s %s", dates, []string{"+", "-"}, []string{"0", "1", "-1", "365", "2147483647", "-800000"})
	add("3 + %s", dates)
	add("%s - %s", dates, dates)
	add("%s + %s", dates, times)
	add("%s + %s", times, dates)
	for _, a := range [][]string{dates, stamps, instants, times} {
		add("%s + %s", a, spans)
		add("%s - %s", a, spans)
		add("%s + %s", spans, a)
	}
	add("%s - %s", stamps, stamps)
	add("%s - %s", instants, instants)
	add("%s - %s", times, times)
	add("%s %s %s", spans, []string{"+", "-"}, spans)
	add("- %s", spans)
	add("%s * %s", spans, []string{"2", "0.5", "-1.25", "1e10", "0.1", "'NaN'::float8", "'inf'::float8", "0"})
	add("%s / %s", spans, []string{"2", "0.5", "-1.25", "3", "1e-10", "'NaN'::float8", "0", "7"})
	add("3 * %s", spans)
	for _, a := range [][]string{dates, stamps, instants, times, spans} {
		add("extract('%s' from %s)", allFields, a)
		add("date_part('%s', %s)", allFields, a)
		add("isfinite(%s)", a)
	}
	add("date_trunc('%s', %s)", allFields, stamps)
	add("date_trunc('%s', %s)", allFields, instants)
	add("date_trunc('%s', %s)", allFields, spans)
	add("date_trunc('%s', %s)", []string{"day", "month"}, dates)
	add("date_trunc('%s', %s, %s)", []string{"hour", "day", "week", "month"}, instants, []string{"'Europe/Berlin'", "'America/New_York'", "'EST'", "'x'", "'+05:30'"})
	add("date_bin(%s, %s, %s)", []string{"'15 min'::interval", "'1 day 3 hours'::interval", "'1 month'::interval", "'0'::interval", "'-1 day'::interval"}, stamps,
		[]string{"'2000-01-01 00:02:30'::timestamp", "'2030-01-01'::timestamp", "'infinity'::timestamp"})
	add("to_timestamp(%s)", []string{"0", "1.5", "-1.5", "1e18", "'NaN'::float8", "'inf'::float8", "'-inf'::float8", "1700000000.123456", "-62135596800.1", "1e13", "9.2e12"})
	add("make_date(%s, %s, %s)", []string{"2024", "0", "-44", "2023", "99999999"}, []string{"2", "13", "0"}, []string{"29", "0", "28"})
	add("make_time(%s, %s, %s)", []string{"0", "23", "24", "25", "-1"}, []string{"0", "59", "60"}, []string{"0", "59.9999999", "60", "61", "-0.5", "8.25"})
	add("make_timestamp(%s, 2, 29, %s, 5, 6.5)", []string{"2024", "2023", "-44", "300000"}, []string{"0", "24", "12"})
	add("make_timestamptz(%s, 2, 28, 12, 5, 6.5)", []string{"2024", "2023"})
	add("make_timestamptz(2024, 7, 28, 12, 5, 6.5, %s)", []string{"'Europe/Berlin'", "'UTC'", "'+2'", "'-03:30'", "'EST'", "'nowhere'"})
	exprs = append(exprs, "make_interval()", "make_interval(1)", "make_interval(1,2)", "make_interval(1,2,3)", "make_interval(1,2,3,4)", "make_interval(1,2,3,4,5)",
		"make_interval(1,2,3,4,5,6)", "make_interval(1,2,3,4,5,6,7.5)", "make_interval(-1,2,-3,4,-5,6,-7.5)", "make_interval(0,0,0,0,0,0,'inf'::float8)")
	add("%s(%s)", []string{"justify_hours", "justify_days", "justify_interval"}, append(spans, "'1 mon -40 days 30:00'::interval", "'-1 mon 40 days -30:00'::interval", "'29 days 23:59'::interval", "'-1 day 25:00'::interval"))
	old := slices.DeleteFunc(slices.Clone(sampleTimestamps), func(s string) bool { return strings.Contains(s, "infinity") }) // of these PostgreSQL 15 says nonsense
	add("age(%s::timestamp, %s::timestamp)", old, old)
	add("age(%s::timestamptz, %s::timestamptz)", old, old)
	add("age(%s, %s)", []string{"'2024-03-31'::timestamp", "'2024-02-29 10:00'::timestamp"}, []string{"'2024-02-29 11:00'::timestamp", "'2023-12-31'::timestamp", "'2025-01-30'::timestamp"})
	zones := []string{"'Europe/Berlin'", "'America/New_York'", "'UTC'", "'EST'", "'cest'", "'+3'", "'UTC-5'", "'Asia/Kolkata'", "'nowhere'", "''"}
	add("timezone(%s, %s)", zones, stamps)
	add("timezone(%s, %s)", zones, instants)
	add("%s AT TIME ZONE %s", stamps, []string{"'2 hours'::interval", "'-05:30'::interval", "'1 day'::interval", "'Europe/Berlin'", "'1 month'::interval"})
	add("%s AT TIME ZONE %s", instants, []string{"'2 hours'::interval", "'-05:30'::interval", "'America/New_York'"})
	add("%s %s %s", []string{dates[0], dates[2]}, []string{"=", "<", ">"}, []string{stamps[0], instants[2], stamps[2]})
	newOracle(t).check(t, thin(t, exprs, 2))
}
