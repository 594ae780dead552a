package expr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRegexps compares patterns and the functions that take them.
func TestRegexps(t *testing.T) {
	t.Parallel()
	var exprs []string
	add := func(format string, lists ...[]string) { exprs = append(exprs, combine(format, lists...)...) }
	texts := []string{"''", "'abc'", "'foobarbaz'", "'a1b22c333'", "'XY1234Z'", "'the quick brown fox'", "E'line1\\nline2\\n'", "'aaa'", "'→✓ €'", "'x=1;y=22'", "'ABCabc'", "NULL"}
	patterns := []string{
		"''", "'a'", "'^a'", "'c$'", "'b.'", "'[a-c]+'", "'[^a-c]+'", `'\d+'`, `'(\w+)\s(\w+)'`, "'(a|ab)(c|bcd)?'", "'Y*([0-9]{1,3})'", "'Y*?([0-9]{1,3})'",
		"'(o)(x)?'", `'\mq\w*'`, `'\w+\M'`, `'\yfox\y'`, "'(?i)ABC'", "'(?n)^line2$'", "'^line2$'", "'a{2}'", "'a{2,}'", "'a{1,2}?'", "'a*?'",
		"'[[:alpha:]]+'", "'[[:digit:]]{2}'", "'[]a]'", "'[a-]'", "'[a'", "'(a'", "'a)'", "'a**'", "'*a'", "'a{2'", "'a{3,2}'", "'a{256}'", `'\'`, `'\q'`, "'[z-a]'", "'[[:foo:]]'",
		"'|a'", "'()'", "'a|b|'", "'.'", "'.*'", "'.*?b'", "'b.*?a.*'", "'(foo|bar)+'", "'(?:foo|bar)+(b)'", "'***=a'", "'***:a'", "'(?x)a b # c'", `'\x61'`, `'\u0061'`, `'[\d]+'`,
		`'[\w=]+'`, `'([a-z])(\d+)'`, `'(\d)(\d)?(\d)?'`, `'x=(\d+);y=(\d+)'`, "'[[:<:]]f'", "'a?b?c?'", "'(a|b)*c'", "'^(\\S+) (\\S+)'", "'{a'", "'(?q)a.b'", "'a(?#note)b'", "'[^\\d]'",
		"'(^a|b)'", "'$'", "'^'", "'(b|$)'", "'^*'", "'a||b'", "'[.'", "'[[.a.]]'", "'[[=a=]]'",
	}
	add("regexp_match(%s, %s)", texts, patterns)
	add("%s ~ %s", texts, patterns)
	add("%s %s %s", []string{"'FooBar'", "'foobar'"}, []string{"~*", "!~", "!~*", "~"}, []string{"'foo'", "'B'", "'[a-f]+'", "'z'"})
	add("regexp_replace(%s, %s, %s)", texts, patterns[:30], []string{`'<\&>'`, `'\1-\2'`})
	add("regexp_replace(%s, %s, %s, 'g')", texts, patterns, []string{`'<\&>'`, `'[\1\\\3\x]'`})
	add("regexp_replace(%s, '[a-c]', 'X', %s)", texts, []string{"1", "2", "4", "100", "0", "-1", "'gi'", "'1'", "'z'", "''", "'in'"})
	add("regexp_replace(%s, '[a-c]*', 'X', %s, %s)", texts, []string{"1", "2", "100"}, []string{"0", "1", "2", "-1"})
	add("regexp_replace(%s, '[A-C]', 'X', 2, %s, %s)", texts, []string{"0", "1"}, []string{"'i'", "'gi'"})
	add("regexp_count(%s, %s)", texts, patterns[:30])
	add("regexp_count(%s, 'a', %s)", texts, []string{"1", "2", "0", "100"})
	add("regexp_count(%s, 'A', 1, %s)", texts, []string{"'i'", "'g'", "''"})
	add("regexp_like(%s, %s)", texts, patterns[:12])
	add("regexp_like(%s, 'A', %s)", texts, []string{"'i'", "'g'", "'x'"})
	add("regexp_instr(%s, %s)", texts, patterns[:20])
	add(`regexp_instr(%s, '([a-z])([a-z0-9])', %s, %s, %s, 'i', %s)`, texts, []string{"1", "3"}, []string{"1", "2", "0"}, []string{"0", "1", "2"}, []string{"0", "1", "2", "3", "-1"})
	add("regexp_substr(%s, %s)", texts, patterns[:20])
	add(`regexp_substr(%s, '([a-z])([a-z0-9])', %s, %s, 'i', %s)`, texts, []string{"1", "3"}, []string{"1", "2", "0"}, []string{"0", "1", "2", "3"})
	add("regexp_split_to_array(%s, %s)", texts, []string{"''", `'\s+'`, "','", "'[0-9]+'", "'a'", "'a*'", `'\s*'`, "'b|'"})
	add("substring(%s from %s)", texts, patterns[:30])
	add("substring(%s similar %s escape '#')", texts, []string{`'%#"o_b#"%'`, `'#"_b_#"%'`, `'%#"a#"'`, "'abc'", `'#"#"#"'`})
	exprs = append(exprs, "regexp_match('abc', 'b', 'g')", "regexp_match('abc', 'B', 'i')", "regexp_match('a', 'a', 'y')",
		`regexp_match('10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a/b HTTP/1.1" 200 203023 "-" "x"', '^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*"? (\d{3}) (\d+|-)')`)
	newOracle(t).check(t, thin(t, exprs, 3))
}

// TestRegexpsRefused are patterns that PostgreSQL has and Leat does not.
func TestRegexpsRefused(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`'a' ~ '(a)\1'`:  "ERROR 0A000|a back reference in a regular expression is not supported: it cannot be matched in linear time",
		`'a' ~ 'a(?=b)'`: "ERROR 0A000|lookahead, (?= or (?!, in a regular expression is not supported: it cannot be matched in linear time",
		`'a' ~ '(?<!b)'`: "ERROR 0A000|lookbehind, (?<= or (?<!, in a regular expression is not supported: it cannot be matched in linear time",
	} {
		if got := evaluate(expr, asWritten); got != want {
			t.Errorf("%s\n got  %s\n want %s", expr, got, want)
		}
	}
}

// TestRandomRegexps compares where random patterns match random texts.
func TestRandomRegexps(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	var exprs []string
	for range 1500 {
		lazy := r.IntN(4) == 0
		p := randomPattern(r, 3, lazy)
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteByte("aabbc 1"[r.IntN(7)])
		}
		exprs = append(exprs, fmt.Sprintf("regexp_instr('%s', '%s') || ' ' || regexp_instr('%[1]s', '%[2]s', 1, 1, 1)", text.String(), p))
	}
	newOracle(t).check(t, exprs)
}

func randomPattern(r *rand.Rand, depth int, lazy bool) string {
	quant := func() string {
		q := []string{"", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"}[r.IntN(9)]
		if lazy && q != "" && q != "{2}" {
			q += "?"
		}
		return q
	}
	var b strings.Builder
	for range 1 + r.IntN(3) {
		switch k := r.IntN(9); {
		case k < 4 || depth == 0:
			b.WriteString([]string{"a", "b", "c", ".", "[ab]", "[^a]", `\d`, `\w`, `\s`, "ab"}[r.IntN(10)])
			b.WriteString(quant())
		case k < 6:
			b.WriteString("(" + randomPattern(r, depth-1, lazy) + ")" + quant())
		case k < 7:
			b.WriteString("(?:" + randomPattern(r, depth-1, lazy) + "|" + randomPattern(r, depth-1, lazy) + ")" + quant())
		case k < 8:
			b.WriteString([]string{"^", "$", `\m`, `\M`, `\y`, `\Y`}[r.IntN(6)])
		default:
			b.WriteString(randomPattern(r, depth-1, lazy))
		}
	}
	return b.String()
}
