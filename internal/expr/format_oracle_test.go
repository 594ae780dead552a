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
		{"10/Oct/2000:13:55:36 -0700", "DD/Mon/YYYY:HH24:MI:SS TZHTZM"},
		{"17/May/2015:10:05:03 +0000", "DD/Mon/YYYY:HH24:MI:SS TZHTZM"},
		{"17/May/2015:10:05:03+0530", "DD/Mon/YYYY:HH24:MI:SS TZHTZM"},
		{"17/May/2015:10:05:03 -05:30", "DD/Mon/YYYY:HH24:MI:SS TZH:TZM"},
		{"2024-02-29", "YYYY-MM-DD"},
		{"2023-02-29", "YYYY-MM-DD"},
		{"20240229", "YYYYMMDD"},
		{"20240229123456", "YYYYMMDDHH24MISS"},
		{"2024-02-29 12:34:56.789", "YYYY-MM-DD HH24:MI:SS.MS"},
		{"2024-02-29 12:34:56.7", "YYYY-MM-DD HH24:MI:SS.MS"},
		{"2024-02-29 12:34:56.789012", "YYYY-MM-DD HH24:MI:SS.US"},
		{"05 Dec 2000", "DD Mon YYYY"},
		{"5 december 2000", "DD Month YYYY"},
		{"2000/JUN", "YYYY MON"},
		{"2000    JUN", "YYYY MON"},
		{"2000JUN", "YYYY MON"},
		{"2000 + JUN", "YYYY /MON"},
		{"12:30 PM", "HH12:MI AM"},
		{"12:30 AM", "HH12:MI AM"},
		{"13:30 PM", "HH12:MI AM"},
		{"1:30 p.m.", "HH:MI A.M."},
		{"99-1-1", "YY-MM-DD"},
		{"69-1-1", "YY-MM-DD"},
		{"024-1-1", "YYY-MM-DD"},
		{"44-03-15 BC", "YYYY-MM-DD BC"},
		{"2024-366", "YYYY-DDD"},
		{"2023-366", "YYYY-DDD"},
		{"2024-W09-4", "IYYY-\"W\"IW-ID"},
		{"2024 9", "IYYY IW"},
		{"2024-10", "YYYY-WW"},
		{"2460000", "J"},
		{"2,024-02-03", "Y,YYY-MM-DD"},
		{"XII 2020", "RM YYYY"},
		{"2024-13-01", "YYYY-MM-DD"},
		{"x", "YYYY"},
		{"", "YYYY"},
		{"2024-01-01 25:00", "YYYY-MM-DD HH24:MI"},
		{"2024-01-01 10:61", "YYYY-MM-DD HH24:MI"},
		{"Foo 2024", "Mon YYYY"},
		{"2024-01-01 3661", "YYYY-MM-DD SSSS"},
		{"2024 1", "YYYYMM"},
		{"202", "YYYYMM"},
		{"20241", "YYYYMM"},
		{"99999999999", "YYYY"},
		{"2024-01-01 UTC", "YYYY-MM-DD TZ"},
		{"2024-1-1 2024", "YYYY-MM-DD YYYY"},
		{"2024-1-1 2025", "YYYY-MM-DD YYYY"},
		{"21st 01 2024", "DDth MM YYYY"},
		{"Monday 2024-01-01", "Day YYYY-MM-DD"},
		{"  2024-01-01", "YYYY-MM-DD"},
		{"2024-01-01", "FXYYYY-MM-DD"},
		{"2024 01 01", "FXYYYY-MM-DD"},
		{"2024-01-01 10", "YYYY-MM-DD TZH"},
		{"2024-01-01 -10", "YYYY-MM-DD TZH"},
		{"2024-01-01 +16", "YYYY-MM-DD TZH"},
		{"20 24", "CC YY"},
		{"-44-01-01", "YYYY-MM-DD"},
		{"2024.01.01", "YYYY-MM-DD"},
		{"2024x01", "YYYYxMM"},
		{"0000-01-01", "YYYY-MM-DD"},
		{"2024-01-01 10:00:00.123456", "YYYY-MM-DD HH24:MI:SS.FF6"},
		{"2024-01-01 10:00:00.12", "YYYY-MM-DD HH24:MI:SS.FF2"},
		{"3 2024", "W YYYY"},
		{"2024 03 1", "IYYY MM DD"},
		{"1 1", "MM DD"},
		{"", ""},
	}
	for _, p := range pairs {
		exprs = append(exprs, "to_timestamp('"+p[0]+"', '"+p[1]+"')", "to_date('"+p[0]+"', '"+p[1]+"')")
	}
	newOracle(t).check(t, exprs)
}

// TestNumberFormats compares to_char of numbers.
func TestNumberFormats(t *testing.T) {
	t.Parallel()
	formats := []string{
		"'999'", "'FM999'", "'9,999,999'", "'9G999D99'", "'0000'", "'FM0000'", "'999.99'", "'FM999.99'", "'FM990.00'", "'990.90'", "'9.9'", "'FM9.9'", "'S999'", "'999S'", "'MI999'", "'999MI'", "'PL999'",
		"'SG999'", "'999PR'", "'FM999PR'", "'999th'", "'999TH'", "'RN'", "'FMRN'", "'rn'", "'99V99'", "'9.99EEEE'", "'L999'", "'\"n=\"999'", "'$999'", "'.99'", "''", "'x'", "'0999.90'", "'FM09'", "'999.'",
		"'9S9S'", "'9.9.9'", "'99PR9'", "'999,'", "'FM999,999.99'", "'00.00'", "'S0000.00'", "'999D99S'",
	}
	values := []string{"0", "1", "-1", "12", "123", "-123", "1234567", "0.5", "-0.5", "12.345", "99.995", "0.001", "1485", "3999", "4000", "12.5::float8", "-0.25::float4", "1e10::float8", "1234567890123::int8", "21", "11"}
	exprs := combine("to_char(%s, %s)", values, formats)
	exprs = append(exprs, "to_char('NaN'::numeric, '999')", "to_char('NaN'::numeric, '999TH')", "to_char('NaN'::float8, '99')", "to_char('NaN'::numeric, 'RN')", "to_char('NaN'::numeric, '9.99EEEE')")
	newOracle(t).check(t, exprs)
}
