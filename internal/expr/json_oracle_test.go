package expr

import "testing"

// TestJSON compares operators and functions of jsonb.
func TestJSON(t *testing.T) {
	t.Parallel()
	var exprs []string
	add := func(format string, lists ...[]string) { exprs = append(exprs, combine(format, lists...)...) }
	docs := cast([]string{
		`'{"a": 1, "b": [1, 2.50, "x", null, {"c": true}], "long key": {"a": {"b": null}}}'`, `'[1, "a", [2, 3], {"k": "v"}, null]'`, `'"str"'`, `'"a"'`, `'1.50'`, `'null'`,
		`'true'`, `'{}'`, `'[]'`, `'{"a": "q\"\\\n\u00e9", "é": "日本", "b": null}'`, `'[["a"], "a", {"a": 1.0}]'`, `'{"b": 2, "aa": 3, "a": {"x": 1}}'`,
	}, "jsonb")
	add("%s %s %s", docs, []string{"->", "->>"}, []string{"'a'", "'b'", "'long key'", "'é'", "'zz'", "''", "0", "1", "-1", "-5", "-6", "99", "NULL::text"})
	add("%s %s %s", docs, []string{"#>", "#>>"}, []string{"'{}'", "'{a}'", "'{b,2}'", "'{b,-1,c}'", "'{long key,a,b}'", "'{0}'", "'{2,0}'", "'{3,k}'", "'{x,y}'", "ARRAY['b',NULL]", "'{b,1x}'", "'{a,x}'"})
	add("jsonb_extract_path(%s, %s)", docs, []string{"'a'", "'b', '1'", "'b', '4', 'c'", "NULL"})
	add("jsonb_extract_path_text(%s, %s)", docs, []string{"'a'", "'b', '1'", "'b', '3'"})
	add("%s(%s)", []string{"jsonb_typeof", "jsonb_array_length", "jsonb_strip_nulls", "jsonb_pretty", "to_jsonb"}, docs)
	add("%s %s %s", docs, []string{"@>", "<@", "||"}, docs)
	add("%s ? %s", docs, []string{"'a'", "'str'", "'é'", "''", "'zz'"})
	add("%s %s %s", docs, []string{"?|", "?&"}, []string{"ARRAY['a','b']", "ARRAY['zz','a']", "'{}'::text[]", "ARRAY['a',NULL]"})
	add("%s - %s", docs, []string{"'a'", "'zz'", "0", "-1", "99", "-99", "ARRAY['a','b']", "'{}'::text[]", "ARRAY['a',NULL]"})
	add("to_jsonb(%s)", append(append(append(cast(sampleTimestamps, "timestamp"), cast(sampleTimestamps, "timestamptz")...), cast(sampleDates, "date")...),
		"1", "1.50", "'NaN'::numeric", "'NaN'::float8", "1e20::float8", "1e-7::float8", "0.1::float4", "'x'::text", `'q"\'::text`, "true", "ARRAY[1,NULL,3]", "'{{1,2},{3,4}}'::int4[]", "ARRAY['a']",
		"'{}'::text[]", "'1 day'::interval", `'\x00ff'::bytea`, "'12:00'::time", "NULL::text", "9223372036854775807", "ARRAY[true,false]"))
	exprs = append(exprs,
		"jsonb_build_object()", "jsonb_build_object('a', 1)", "jsonb_build_object('b', 1, 'a', 'x', 'b', 2.0)", "jsonb_build_object('a', NULL)", "jsonb_build_object('a')",
		"jsonb_build_object(1, true)", "jsonb_build_object(true, 1)", "jsonb_build_object('a', '{\"x\": 1}'::jsonb)", "jsonb_build_object('a', ARRAY[1,2])",
		"jsonb_build_array()", "jsonb_build_array(1, 'a', NULL, true, 2.50, '[1]'::jsonb)", "jsonb_build_object(ARRAY[1], 1)", "jsonb_build_object('2024-01-01'::date, '2024-01-01'::timestamp)",
		`'{"a": 1}'::jsonb = '{"a": 1.0}'::jsonb`, `'1'::jsonb -> 0`, `('{"a": {"b": 5}}'::jsonb -> 'a' ->> 'b')::int4`,
	)
	newOracle(t).check(t, thin(t, exprs, 2))
}
