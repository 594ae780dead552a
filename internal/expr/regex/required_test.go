package regex

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, str string
		lo, hi       int
	}{
		{"(?:&|^)channel_id=([^&]*)", "channel_id=", 0, 1},
		{"a*bcd", "bcd", 0, -1},
		{"x(ab)y+longer.*", "xab", 0, 0},
		{"[é-ë]?abc", "abc", 0, 2},
		{"(abc|def)", "", 0, 0},
		{".*abcdef.xy", "abcdef", 0, -1},
		{"..{3}ab", "ab", 4, 16},
		{"(ab)*", "", 0, 0},
		{"a", "", 0, 0},
	} {
		r, err := Compile(c.pattern, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m := r.must; string(m.str) != c.str || c.str != "" && (m.lo != c.lo || m.hi != c.hi) {
			t.Errorf("%s: %q after %d to %d bytes, want %q after %d to %d", c.pattern, m.str, m.lo, m.hi, c.str, c.lo, c.hi)
		}
	}
}

// TestRequiredChangesNothing compares matches with those found without looking for the required string first.
func TestRequiredChangesNothing(t *testing.T) {
	t.Parallel()
	const seed = 11
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"ab", "ba", "a", "(ab|b)", "(?:a|^)", "b*", "[ab]", ".", "é", "a?", "(b)", "$", ".{1,3}", "[^a]*", "(?:ab)+"}
	texts := []string{"a", "b", "é", "ab", "ba", "c"}
	for range 3000 {
		var pattern, text strings.Builder
		for range 1 + rnd.IntN(5) {
			pattern.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		with, err := Compile(pattern.String(), 0)
		if err != nil {
			continue
		}
		without, _ := Compile(pattern.String(), 0)
		without.must = required{}
		for range 10 {
			text.Reset()
			for range rnd.IntN(12) {
				text.WriteString(texts[rnd.IntN(len(texts))])
			}
			from := 0
			if text.Len() > 0 && rnd.IntN(3) == 0 {
				from = strings.IndexByte(text.String(), 'a')
			}
			if from < 0 {
				continue
			}
			g, ok, _ := with.Find([]byte(text.String()), from)
			h, want, _ := without.Find([]byte(text.String()), from)
			if ok != want || ok && !slices.Equal(g, h) {
				t.Fatalf("%s in %q from %d: %v %v, without the shortcut %v %v", pattern.String(), text.String(), from, g, ok, h, want)
			}
		}
	}
}
