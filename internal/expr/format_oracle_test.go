package expr

import "testing"

// TestTimeFormats compares to_char, to_timestamp and to_date.
func TestTimeFormats(t *testing.T) {
	t.Parallel()
	var exprs []string
	add := func(format string, lists ...[]string) { exprs = append(exprs, combine(format, lists...)...) }
	formats := []string{
		"'YYYY-MM-DD HH24:MI:SS'", "'YYYY-MM-DD HH12:MI:SS.US AM'", "'Day, DD Mon YYYY'", "'FMDay, FMDD FMMonth YYYY'", "'DAY day Dy DY dy'", "'MONTH month MON mon'",
		"'DDD D ID IDDD IW IYYY IYY IY I WW W'", "'Q CC J'", "'MS US FF1 FF3 FF6'", "'SSSS'", "'A.M. p.m. AD b.c.'", "'Y,YYY YYY YY Y'", "'RM rm FMRM'", "'DDth DDTH HH24th'",
		"'\"text\" YYYY \\\"x'", "'TZ tz TZH:TZM OF'", "''", "'FMHH24:FMMI:FMSS'", "'yyyy-mm-dd'", "'Hh x'", "'FMYYYY FMDDD FMWW'", "'TMMonth'", "'HH24:MI:SS.FF3 TZH'", "'DD/Mon/YYYY'", "'é YYYY'",
	}
	add("to_char(%s, %s)", cast(sampleTimestamps, "timestamp"), formats)
	add("to_char(%s, %s)", cast(sampleTimestamps, "timestamptz"), formats)
	add("to_char(%s, %s)", cast(sampleDates[:6], "date"), formats[:4])
	add("to_char(%s, %s)", cast(sampleIntervals[:11], "interval"), formats)
	pairs := [][2]string{
		{"10/Oct/2000:13:55:36 -0700", "DD/Mon/YYYY:HH24:MI:SS TZHTZM"}, {"17/May/2015:10:05:03 +0000", "DD/Mon/YYYY:HH24:MI:SS TZHTZM"},
		{"17/May/2015:10:05:03+0530", "DD/Mon/YYYY:HH24:MI:SS TZHTZM"}, {"17/May/2015:10:05:03 -05:30", "DD/Mon/YYYY:HH24:MI:SS TZH:TZM"},
		{"2024-02-29", "YYYY-MM-DD"}, {"2023-02-29", "YYYY-MM-DD"}, {"20240229", "YYYYMMDD"}, {"20240229123456", "YYYYMMDDHH24MISS"}, {"2024-02-29 12:34:56.789", "YYYY-MM-DD HH24:MI:SS.MS"},
		{"2024-02-29 12:34:56.7", "YYYY-MM-DD HH24:MI:SS.MS"}, {"2024-02-29 12:34:56.789012", "YYYY-MM-DD HH24:MI:SS.US"}, {"05 Dec 2000", "DD Mon YYYY"}, {"5 december 2000", "DD Month YYYY"},
		{"2000/JUN", "YYYY MON"}, {"2000    JUN", "YYYY MON"}, {"2000JUN", "YYYY MON"}, {"2000 + JUN", "YYYY /MON"}, {"12:30 PM", "HH12:MI AM"}, {"12:30 AM", "HH12:MI AM"}, {"13:30 PM", "HH12:MI AM"},
		{"1:30 p.m.", "HH:MI A.M."}, {"99-1-1", "YY-MM-DD"}, {"69-1-1", "YY-MM-DD"}, {"024-1-1", "YYY-MM-DD"}, {"44-03-15 BC", "YYYY-MM-DD BC"}, {"2024-366", "YYYY-DDD"}, {"2023-366", "YYYY-DDD"},
		{"2024-W09-4", "IYYY-\"W\"IW-ID"}, {"2024 9", "IYYY IW"}, {"2024-10", "YYYY-WW"}, {"2460000", "J"}, {"2,024-02-03", "Y,YYY-MM-DD"}, {"XII 2020", "RM YYYY"}, {"2024-13-01", "YYYY-MM-DD"},
		{"x", "YYYY"}, {"", "YYYY"}, {"2024-01-01 25:00", "YYYY-MM-DD HH24:MI"}, {"2024-01-01 10:61", "YYYY-MM-DD HH24:MI"}, {"Foo 2024", "Mon YYYY"}, {"2024-01-01 3661", "YYYY-MM-DD SSSS"},
		{"2024 1", "YYYYMM"}, {"202", "YYYYMM"}, {"20241", "YYYYMM"}, {"99999999999", "YYYY"}, {"2024-01-01 UTC", "YYYY-MM-DD TZ"}, {"2024-1-1 2024", "YYYY-MM-DD YYYY"}, {"2024-1-1 2025", "YYYY-MM-DD YYYY"},
		{"21st 01 2024", "DDth MM YYYY"}, {"Monday 2024-01-01", "Day YYYY-MM-DD"}, {"  2024-01-01", "YYYY-MM-DD"}, {"2024-01-01", "FXYYYY-MM-DD"}, {"2024 01 01", "FXYYYY-MM-DD"}, {"2024-01-01 10", "YYYY-MM-DD TZH"},
		{"2024-01-01 -10", "YYYY-MM-DD TZH"}, {"2024-01-01 +16", "YYYY-MM-DD TZH"}, {"20 24", "CC YY"}, {"-44-01-01", "YYYY-MM-DD"}, {"2024.01.01", "YYYY-MM-DD"}, {"2024x01", "YYYYxMM"}, {"0000-01-01", "YYYY-MM-DD"},
		{"2024-01-01 10:00:00.123456", "YYYY-MM-DD HH24:MI:SS.FF6"}, {"2024-01-01 10:00:00.12", "YYYY-MM-DD HH24:MI:SS.FF2"}, {"3 2024", "W YYYY"}, {"2024 03 1", "IYYY MM DD"}, {"1 1", "MM DD"}, {"", ""},
	}
	for _, p := range pairs {
		exprs = append(exprs, "to_timestamp('"+p[0]+"', '"+p[1]+"')", "to_date('"+p[0]+"', '"+p[1]+"')")
	}
	newOracle(t).check(t, exprs)
}
