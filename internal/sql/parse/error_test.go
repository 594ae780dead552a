package parse

import (
	"strings"
	"testing"
)

// TestErrors has the position of the error in the source: the caret ‸ stands before the character that it is about.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ source, code, message string }{
		{"‸selec 1", "42601", `syntax error at or near "selec"`},
		{"select a from ‸where", "42601", `syntax error at or near "where"`},
		{"select 1 +‸", "42601", "syntax error at end of input"},
		{"select (1‸", "42601", "syntax error at end of input"},
		{"select 1 ‸2", "42601", `syntax error at or near "2"`},
		{"select 'é', ‸)", "42601", `syntax error at or near ")"`},
		{"select ‸'abc", "42601", `unterminated quoted string at or near "'abc"`},
		{"select ‸E'abc\\'", "42601", `unterminated quoted string at or near "E'abc\'"`},
		{"select ‸$x$abc$y$", "42601", `unterminated dollar-quoted string at or near "$x$abc$y$"`},
		{`select ‸"abc`, "42601", `unterminated quoted identifier at or near ""abc"`},
		{`select ‸""`, "42601", `zero-length delimited identifier at or near """"`},
		{"select 1 ‸/* a /* b */", "42601", `unterminated /* comment at or near "/* a /* b */"`},
		{"select ‸12abc", "42601", `trailing junk after numeric literal at or near "12abc"`},
		{"select ‸1e", "42601", `trailing junk after numeric literal at or near "1e"`},
		{"select ‸1__0", "42601", `trailing junk after numeric literal at or near "1__0"`},
		{"select ‸$1a", "42601", `trailing junk after parameter at or near "$1a"`},
		{"select ‸$0", "42P02", "there is no parameter $0"},
		{"select ‸$99999999999", "42601", `parameter number too large at or near "$99999999999"`},
		{"select ‸B'012'", "22P02", `"2" is not a valid binary digit`},
		{"select ‸X'0g'", "22P02", `"g" is not a valid hexadecimal digit`},
		{`select E'‸\u12'`, "22025", "invalid Unicode escape"},
		{`select E'‸\ud83dx'`, "42601", `invalid Unicode surrogate pair at or near "\ud83d"`},
		{`select ‸E'\xff'`, "22021", `invalid byte sequence for encoding "UTF8": 0xff`},
		{`select ‸U&'\00'`, "42601", "invalid Unicode escape"},
		{"select ‸\\x", "42601", `syntax error at or near "\"`},
		{"select a < b ‸< c", "42601", `syntax error at or near "<"`},
		{"select a between 1 and 2 ‸between 3 and 4", "42601", `syntax error at or near "between"`},
		{"select a like b ‸like c", "42601", `syntax error at or near "like"`},
		{"select a is ‸5", "42601", `syntax error at or near "5"`},
		{"select * ‸1", "42601", `syntax error at or near "1"`},
		{"select case ‸end", "42601", `syntax error at or near "end"`},
		{"select case when a ‸else 1 end", "42601", `syntax error at or near "else"`},
		{"select f(1) 'x' ‸over w", "42601", `syntax error at or near "over"`},
		{"select cast(a ‸int)", "42601", `syntax error at or near "int"`},
		{"select a::‸1", "42601", `syntax error at or near "1"`},
		{"select ‸a.b.c.d(1)", "42601", "improper qualified name (too many dotted names): a.b.c.d"},
		{"select 1 limit ‸1, 2", "42601", "LIMIT #,# syntax is not supported"},
		{"select 1 limit 1 ‸limit 2", "42601", "multiple LIMIT clauses not allowed"},
		{"select 1 ‸fetch first 1 row with ties", "42601", "WITH TIES cannot be specified without ORDER BY clause"},
		{"select a ‸into b from c", "0A000", "SELECT ... INTO is not supported"},
		{"select * from a join b‸", "42601", "syntax error at end of input"},
		{"select * from (a‸)", "42601", `syntax error at or near ")"`},
		{"select * from ‸tumble(a, b)", "42601", "TUMBLE takes a relation, a time column, the size and, if needed, an offset"},
		{"select * from tumble(a, ‸1 + 1, c)", "42601", "TUMBLE takes a relation, a time column, the size and, if needed, an offset: the second must be the name of a column"},
		{"select * from a ‸tablesample system (1)", "0A000", "TABLESAMPLE is not supported"},
		{"select sum(a) over (rows ‸unbounded following)", "42P20", "frame start cannot be UNBOUNDED FOLLOWING"},
		{"select 1; select 2; ‸selec 3", "42601", `syntax error at or near "selec"`},
		{"create table t (a int, ‸)", "42601", `syntax error at or near ")"`},
		{"create table t (a ‸select)", "42601", `syntax error at or near "select"`},
		{"create ‸tabel t", "42601", `syntax error at or near "tabel"`},
		{"create source s (a int) with (a = 1) ‸with (b = 2)", "42601", "conflicting or redundant options: WITH is given twice"},
		{"create source s with (a ‸1)", "42601", `syntax error at or near "1"`},
		{"create source s format ‸'x'", "42601", `syntax error at or near "'x'"`},
		{"create sink s ‸with_x", "42601", `syntax error at or near "with_x"`},
		{"create table t (a int) ‸as select 1", "42601", ""},
		{"drop ‸tables t", "42601", `syntax error at or near "tables"`},
		{"alter table t‸", "42601", "syntax error at end of input"},
		{"insert into t (a, b ‸select 1", "42601", `syntax error at or near "select"`},
		{"update t set a‸[1] = 2", "0A000", "assigning to a part of a column is not supported"},
		{"delete ‸t", "42601", `syntax error at or near "t"`},
		{"begin isolation level ‸high", "42601", `syntax error at or near "high"`},
		{"set a ‸1", "42601", `syntax error at or near "1"`},
		{"explain ‸", "42601", "syntax error at end of input"},
		{"select ‸" + strings.Repeat("x", MaxNameBytes+1), "42622", ""},
		{"select ?‸", "42601", "syntax error at end of input"},
		{"select 1 ‸?|", "42601", ""},
	} {
		before, after, _ := strings.Cut(c.source, "‸")
		text := before + after
		_, err := Parse(text)
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%s: no error", c.source)
			continue
		}
		if at := len([]rune(before)) + 1; e.Code != c.code || CharPosition(text, e.Position) != at && c.message != "" {
			t.Errorf("%s: got %s at %d, want %s at %d: %s", c.source, e.Code, CharPosition(text, e.Position), c.code, at, e.Message)
		}
		if c.message != "" && e.Message != c.message {
			t.Errorf("%s:\n got %s\nwant %s", c.source, e.Message, c.message)
		}
	}
}

// TestBounds: what is too long, too deep or too much is refused with its own SQLSTATE, and quickly.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, code string }{
		"parentheses":  {"select " + strings.Repeat("(", 100_000), "54001"},
		"closed":       {"select " + strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000), "54001"},
		"not":          {"select " + strings.Repeat("not ", 10_000) + "true", "54001"},
		"minus":        {"select " + strings.Repeat("- ", 10_000) + "1", "54001"},
		"calls":        {"select " + strings.Repeat("f(", 10_000), "54001"},
		"cases":        {"select " + strings.Repeat("case when ", 10_000), "54001"},
		"arrays":       {"select array" + strings.Repeat("[", 10_000), "54001"},
		"subscripts":   {"select a" + strings.Repeat("[a", 10_000), "54001"},
		"queries":      {strings.Repeat("(", 10_000) + "select 1", "54001"},
		"derived":      {"select * from " + strings.Repeat("(select * from ", 10_000), "54001"},
		"table parens": {"select * from " + strings.Repeat("(", 10_000), "54001"},
		"joins":        {"select * from a" + strings.Repeat(" join a", 10_000), "54001"},
		"windows":      {"select * from " + strings.Repeat("tumble(", 10_000), "54001"},
		"with":         {strings.Repeat("with a as (", 10_000), "54001"},
		"explain":      {strings.Repeat("explain ", 10_000) + "select 1", "54001"},
		"prepare":      {strings.Repeat("prepare a as ", 10_000) + "select 1", "54001"},
		"sets":         {"select 1 group by " + strings.Repeat("grouping sets (", 10_000), "54001"},
		"operators":    {"select 1" + strings.Repeat(" + 1", 100_000), "54001"},
		"concats":      {"select 1" + strings.Repeat(" || 1", 100_000), "54001"},
		"casts":        {"select 1" + strings.Repeat("::int", 100_000), "54001"},
		"fields":       {"select (a)" + strings.Repeat(".b", 100_000), "54001"},
		"unions":       {"select 1" + strings.Repeat(" union select 1", 100_000), "54001"},
		"cross joins":  {"select * from a" + strings.Repeat(" cross join a", 100_000), "54001"},
		"is":           {"select 1" + strings.Repeat(" is null", 100_000), "54001"},
		"bytes":        {"select 1" + strings.Repeat(" ", MaxBytes), "54000"},
		"tokens":       {"select 1" + strings.Repeat(",1", MaxTokens/2+1), "54000"},
		"name":         {`select "` + strings.Repeat("é", MaxNameBytes) + `"`, "42622"},
		"operator":     {"select a " + strings.Repeat("~", 100) + " b", "42601"},
		"not text":     {"select 'a\xffb'", "22021"},
		"nul":          {"select 'a\x00b'", "22021"},
	} {
		_, err := Parse(c.text)
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%s: no error", name)
			continue
		}
		if e.Code != c.code || len(e.Message) > 400 {
			t.Errorf("%s: got %s %.200s, want %s", name, e.Code, e.Message, c.code)
		}
	}
	for name, text := range map[string]string{
		"a long AND":      "select 1 where a = 1" + strings.Repeat(" and a = 1", 50_000),
		"a long IN":       "select a in (1" + strings.Repeat(", 1", 50_000) + ")",
		"many rows":       "insert into t values (1, 'x')" + strings.Repeat(", (1, 'x')", 50_000),
		"many statements": strings.Repeat("select 1;", 50_000),
		"a chain":         "select 1" + strings.Repeat(" + 1", 2_000),
		"depth":           "select " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200),
	} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		pieces []string
		rest   string
		open   bool
	}{
		{"", nil, "", false},
		{"select 1", nil, "select 1", false},
		{"select 1; select ';' ;x", []string{"select 1;", " select ';' ;"}, "x", false},
		{"select (1; 2); x", []string{"select (1; 2);"}, " x", false},
		{"select (1;", nil, "select (1;", true},
		{"select 'a;", nil, "select 'a;", true},
		{"select $$;$$; -- a;\n/* ; */ b", []string{"select $$;$$;"}, " -- a;\n/* ; */ b", false},
		{"select 12abc; select 2;", []string{"select 12abc;", " select 2;"}, "", false},
	} {
		pieces, rest, open := Split(c.text)
		if strings.Join(pieces, "|") != strings.Join(c.pieces, "|") || rest != c.rest || open != c.open {
			t.Errorf("Split(%q) = %q, %q, %v", c.text, pieces, rest, open)
		}
	}
}
