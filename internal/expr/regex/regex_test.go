package regex

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func find(t testing.TB, pattern, text string) []string {
	t.Helper()
	r, err := Compile(pattern, 0)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	g, ok, err := r.Find([]byte(text), 0)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	if !ok {
		return nil
	}
	var out []string
	for i := 0; i < len(g); i += 2 {
		if g[i] < 0 {
			out = append(out, "-")
		} else {
			out = append(out, text[g[i]:g[i+1]])
		}
	}
	return out
}

// TestFind has PostgreSQL's answers, some of them from its manual.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          string // groups, separated by |; "" is no match
	}{
		{"a|ab", "ab", "ab"},
		{"Y*([0-9]{1,3})", "XY1234Z", "Y123|123"},
		{"Y*?([0-9]{1,3})", "XY1234Z", "Y1|1"},
		{"(.*?)b", "aabab", "aab|aa"},
		{".*b", "aabab", "aabab"},
		{`\mfoo\M`, "afoo foo", "foo"},
		{`(a)|(b)`, "b", "b|-|b"},
		{`[[:alpha:]]+`, "1étéx2", "étéx"},
		{`(?i)É`, "é", "é"},
		{`^(\S+) \S+`, "host - -", "host -|host"},
		{"(?n)^b.*$", "a\nbc\nd", "bc"},
		{"[^a]{2}", "aé日a", "é日"},
		{".", "日本", "日"},
		{"日+", "x日日本", "日日"},
	} {
		if got := strings.Join(find(t, c.pattern, c.text), "|"); got != c.want {
			t.Errorf("%s in %q: got %q, want %q", c.pattern, c.text, got, c.want)
		}
	}
}

// TestBounded has patterns that take exponential or cubic time where a matcher does not remember.
func TestBounded(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("a", 20_000))
	for _, p := range []string{"(a*)*b", "(a|aa)+b", "a*a*a*a*b", "(a+)+$b", "(.*)(.*)(.*)(.*)x", "([a-c]+)*[d]", "(a?){100}a{100}b", "(?:a*x?)*b"} {
		r, err := Compile(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, ok, err := r.Find(text, 0)
		if ok || err != nil && !errors.Is(err, ErrTooExpensive) {
			t.Errorf("%s: %v %v", p, ok, err)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s took %v", p, d)
		} else {
			t.Logf("%s: %v %v", p, d, err)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, p := range []string{"a*b", "(a|b)+?c{2,3}", `\d+[^x]`, "(?i)[a-z]|", `\mw`, "((((a*)*)*)*)*", "[[:alpha:]é-ü]+"} {
		f.Add(p, "aabbcc 123 éü")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 200 || !utf8.ValidString(pattern) || !utf8.ValidString(text) {
			return
		}
		r, err := Compile(pattern, 0)
		if err != nil {
			return
		}
		for from := 0; from <= len(text); from++ {
			if from < len(text) && !utf8.RuneStart(text[from]) {
				continue
			}
			g, ok, err := r.Find([]byte(text), from)
			if err != nil || !ok {
				continue
			}
			for i := 0; i < len(g); i += 2 {
				if g[i] >= 0 && g[i+1] >= 0 && (int(g[i]) < from || g[i] > g[i+1] || int(g[i+1]) > len(text) || !utf8.ValidString(text[g[i]:g[i+1]])) {
					t.Fatalf("%q in %q from %d: groups %v", pattern, text, from, g)
				}
			}
		}
	})
}

// TestAgainstRE2 compares with Go's package where both mean the same: the longest match.
func TestAgainstRE2(t *testing.T) {
	t.Parallel()
	atoms := []string{"a", "b", ".", "[ab]", "[^b]", "(a|ab)", "(?:b|ba)", "(a*)", "c?", "a{1,2}", "b+", "$", "^"}
	var rec func(p string, depth int)
	texts := []string{"", "a", "ab", "ba", "abab", "aabbc", "cab", "bbb", "abcabc"}
	n := 0
	rec = func(p string, depth int) {
		if depth == 0 {
			n++
			re := regexp.MustCompile("(?s)" + p)
			re.Longest()
			r, err := Compile(p, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				want := re.FindStringIndex(text)
				g, ok, err := r.Find([]byte(text), 0)
				if err != nil || ok != (want != nil) || ok && (int(g[0]) != want[0] || int(g[1]) != want[1]) {
					t.Errorf("%s in %q: got %v %v %v, want %v", p, text, ok, g, err, want)
				}
				if any, _ := r.Match([]byte(text)); any != ok {
					t.Errorf("%s in %q: Match is %v", p, text, any)
				}
			}
			return
		}
		for _, a := range atoms {
			rec(p+a, depth-1)
		}
	}
	rec("", 3)
	t.Logf("%d patterns", n)
}
