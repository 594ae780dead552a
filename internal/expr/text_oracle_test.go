package expr

import (
	"fmt"
	"testing"
)

// combine puts every combination of values into a call.
func combine(format string, lists ...[]string) []string {
	out := []string{}
	var rec func(args []any, rest [][]string)
	rec = func(args []any, rest [][]string) {
		if len(rest) == 0 {
			out = append(out, fmt.Sprintf(format, args...))
			return
		}
		for _, v := range rest[0] {
			rec(append(args[:len(args):len(args)], v), rest[1:])
		}
	}
	rec(nil, lists)
	return out
}

// thin picks one in n, at random: the others come another time.
func thin(t *testing.T, exprs []string, n int) []string {
	r := newRand(t)
	var out []string
	for _, e := range exprs {
		if r.IntN(n) == 0 {
			out = append(out, e)
		}
	}
	return out
}

var (
	sampleTexts = []string{"''", "'a'", "'Hello, World'", "'  pad  '", "'été à ñ'", "'日本語テキスト'", "'a,b,,c'", "'xxabcxx'", "NULL"}
	sampleInts  = []string{"0", "1", "2", "5", "-1", "-3", "100", "2147483647", "-2147483648", "NULL"}
)

// TestStrings compares the functions of text and bytes over values that tend to go wrong.
func TestStrings(t *testing.T) {
	t.Parallel()
	var exprs []string
	add := func(format string, lists ...[]string) { exprs = append(exprs, combine(format, lists...)...) }
	one := []string{"length", "char_length", "character_length", "octet_length", "bit_length", "btrim", "ltrim", "rtrim", "reverse", "ascii", "md5", "quote_literal", "quote_ident", "quote_nullable"}
	add("%s(%s::text)", one, sampleTexts)
	add("%s(%s)", []string{"lower", "upper", "initcap"}, []string{"'Hello, wORLD 1st'", "''", "'a_b-c'", "NULL"})
	add("%s(%s::bytea)", []string{"length", "octet_length", "bit_length", "md5", "sha224", "sha256", "sha384", "sha512"}, []string{`''`, `'abc'`, `'\x00ff'`})
	sets := []string{"' '", "'x'", "'abx'", "''", "'é '", "'語日'"}
	add("%s(%s, %s)", []string{"btrim", "ltrim", "rtrim"}, sampleTexts, sets)
	add("%s(%s::bytea, %s::bytea)", []string{"btrim", "ltrim", "rtrim"}, []string{`'\x000100'`, `'abc'`}, []string{`'\x00'`, `'ac'`, `''`})
	add("trim(both 'x' from %s)", sampleTexts)
	add("%s(%s, %s)", []string{"left", "right", "lpad", "rpad"}, sampleTexts, []string{"0", "1", "3", "-1", "-3", "12", "-2147483648", "NULL"})
	add("repeat(%s, %s)", sampleTexts, []string{"0", "1", "3", "-1"})
	add("%s(%s, %s, %s)", []string{"lpad", "rpad"}, sampleTexts, []string{"0", "4", "11", "-1"}, []string{"'*'", "'ab'", "''", "'é日'"})
	add("substring(%s, %s)", sampleTexts, sampleInts)
	add("substr(%s, %s, %s)", sampleTexts, sampleInts, sampleInts)
	add("substr(%s::bytea, %s, %s)", []string{`'\x0001020304'`}, sampleInts, sampleInts)
	add("overlay(%s placing %s from %s)", sampleTexts, []string{"'ZZ'", "''", "'日'"}, sampleInts)
	add("overlay(%s placing 'ZZ' from %s for %s)", sampleTexts, sampleInts, sampleInts)
	add("position(%s in %s)", []string{"''", "'a'", "'b,'", "'語'", "'é'"}, sampleTexts)
	add("strpos(%s, 'à')", sampleTexts)
	add("split_part(%s, %s, %s)", sampleTexts, []string{"','", "''", "'xx'", "' '"}, sampleInts)
	add("split_part('aaaaa', 'aa', %s)", []string{"1", "2", "3", "4", "-1", "-2", "-3", "-4"})
	add("replace(%s, %s, %s)", sampleTexts, []string{"'a'", "''", "'xx'", "'é'"}, []string{"''", "'<>'"})
	add("translate(%s, %s, %s)", sampleTexts, []string{"'abc'", "'é日a'", "''", "'aa'"}, []string{"'xyz'", "'1'", "''", "'ü語q'"})
	add("starts_with(%s, %s)", sampleTexts, []string{"''", "'He'", "'日'"})
	add("%s ^@ %s", sampleTexts, []string{"''", "'He'", "'日'"})
	add("chr(%s)", []string{"0", "1", "65", "233", "-1", "55296", "1114111", "1114112", "128512"})
	add("to_hex(%s)", []string{"0", "255", "-1", "4294967296", "-9223372036854775808"})
	add("encode(%s::bytea, %s)", []string{`'\x00ff5c41'`, "''", "'abc'", "'" + fmt.Sprintf("%0120d", 7) + "'", "'" + fmt.Sprintf("%057d", 7) + "'"}, []string{"'hex'", "'base64'", "'escape'", "'HEX'", "'x'"})
	add("decode(%s, 'hex')", []string{"'00ff'", "'0'", "'0g'", "' 0 0'", "'00 11'", "''", "'é'"})
	add("decode(%s, 'base64')", []string{"'YWJj'", "'YWI='", "'YQ=='", "'YQ='", "'YQ'", "'Y W J j'", "'Y*Jj'", "'===='", "'YWJjZA=='", "''"})
	add("decode(%s, 'escape')", []string{`'abc\000'`, `'a\\b'`, `'\4'`, `'\400'`, `'é'`})
	add("string_to_array(%s, %s)", sampleTexts, []string{"','", "''", "NULL", "'xx'"})
	add("string_to_array(%s, %s, %s)", sampleTexts, []string{"','", "NULL"}, []string{"'a'", "''", "NULL"})
	add("array_to_string(%s, %s)", []string{"ARRAY[1,NULL,3]", "ARRAY['a','','c']", "'{}'::text[]", "'{{1,2},{3,4}}'::int4[]", "NULL::text[]"}, []string{"','", "''", "NULL"})
	add("array_to_string(%s, %s, %s)", []string{"ARRAY[1,NULL,3]", "ARRAY[true,NULL]"}, []string{"','"}, []string{"'*'", "NULL"})
	exprs = append(exprs,
		`format('%s', 'x')`, `format('%s and %s', 1, 2.50)`, `format('%I', coalesce('a b', ''))`, `format('%I', coalesce('abc', ''))`, `format('%I', coalesce('select', ''))`, `format('%I', coalesce('name', ''))`,
		`format('%L', 'it''s')`, `format('%L', 'a\b')`, `format('%L', NULL)`, `format('%I', NULL)`, `format('%s', NULL)`, `format('%%')`, `format('%')`,
		`format('%2$s %1$s', 'a', 'b')`, `format('%2$s %s', 'a', 'b', 'c')`, `format('|%10s|', 'é')`, `format('|%-10s|', 'é')`, `format('|%*s|', 5, 'a')`,
		`format('|%*s|', -5, 'a')`, `format('|%-*s|', -5, 'a')`, `format('|%2$*1$s|', 5, 'a')`, `format('|%1$*2$s|', 'a', 5)`, `format('%s')`, `format('%d', 1)`, `format('%0$s', 1)`,
		`format('%1s', 'abc')`, `format('%1$', 'a')`, `format('%99999999999s', 'a')`, `format(NULL)`, `format('%s', true)`, `format('%s %s', 'a')`, `format('|%*0$s|', 1, 'a')`,
		`format('|%*2s|', 1, 'a')`, `format('%L %I', 'é"', 'é"')`, `format('|%-5L|', 'a')`, `format('%s', ARRAY[1,2])`, `quote_literal(42)`, `quote_nullable(NULL::int4)`, `quote_literal(1.5)`,
		`concat('a', NULL, 1, true)`, `concat_ws(',', 'a', NULL, 2)`, `'a' || 1`, `convert_to('é', 'UTF8')`, `convert_from('\xc3a9', 'UTF8')`,
		`get_byte('abc'::bytea, 1)`, `get_byte('abc'::bytea, 3)`, `substring('abc' from 2 for 1)`, `substring('abc' for 2)`, `lower(NULL)`, `length(1)`, `upper(1)`, `left('abc')`,
	)
	newOracle(t).check(t, thin(t, exprs, 2))
}

// TestLike compares LIKE and ILIKE.
func TestLike(t *testing.T) {
	t.Parallel()
	texts := []string{"''", "'abc'", "'aXbXc'", "'été'", "'a%c'", "'a_c'", "'日本'", `'a\c'`, "'aaa'", "'ABC'", "NULL"}
	patterns := []string{
		"''", "'%'", "'a%'", "'%c'", "'%b%'", "'a_c'", "'_'", "'__'", "'___'", `'a\%c'`, `'a\_c'`, `'a\\c'`, `'a%\'`, `'\'`, "'%X%X%'", "'é%'", "'_té'", "'a%a'", "'aa%aa'",
		"'%_%'", "'abc'", "'a%c%'", "'_日'", "'日_'", "'%a%b%c'", "NULL",
	}
	var exprs []string
	add := func(format string, lists ...[]string) { exprs = append(exprs, combine(format, lists...)...) }
	add("%s %s %s", texts, []string{"LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"}, patterns)
	add("%s LIKE %s ESCAPE %s", texts, []string{"'a#%c'", "'a##c'", "'#_'", `'a\c'`, "'a#'", "'a%c'", "'é%'"}, []string{"'#'", "''", "'é'", `'\'`, "NULL"})
	exprs = append(exprs, "'abc' LIKE 'a%' ESCAPE '##'")
	add("%s::bytea LIKE %s::bytea", []string{"'abc'", `'\x00ff'`}, []string{"'a%'", `'_b_'`, "'__'"})
	newOracle(t).check(t, exprs)
}
