package expr

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// wordTexts are texts around the eight bytes that loops over text take at a time, with and without characters beyond ASCII.
func wordTexts(r *rand.Rand) []string {
	out := []string{"", "c", "cccccccc", "cbcb\x01cc\x01", "ccccccccc", "abcabcab", "@AZ[`az{", strings.Repeat("Z", 65)}
	letters := []rune("abcCdzAZ@[`{ 09\u007fäÄßẞé漢😀")
	for range 400 {
		n := len(letters)
		if r.IntN(3) > 0 {
			n -= 8 // ASCII
		}
		var b strings.Builder
		for range r.IntN(70) {
			b.WriteRune(letters[r.IntN(n)])
		}
		out = append(out, b.String())
	}
	return out
}

func TestWordsOfText(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	for _, s := range wordTexts(r) {
		for _, drop := range []byte{'c', 0, 'z', 0x7f} {
			want := bytes.ReplaceAll([]byte(s), []byte{drop}, nil)
			for _, behind := range []string{"", "\x01ccc", "cabcabcabc"} {
				if got := appendWithout([]byte("x"), []byte("cc"+s+behind), 2, 2+len(s), drop); string(got) != "x"+string(want) {
					t.Errorf("%q without %q is %q, not %q", s, drop, got[1:], want)
				}
			}
		}
		if got, want := isASCII([]byte(s)), strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0; got != want {
			t.Errorf("isASCII(%q) is %v", s, got)
		} else if want {
			if got, want := appendOtherCase(nil, []byte(s), 'A'), strings.ToLower(s); string(got) != want {
				t.Errorf("lower(%q) is %q, not %q", s, got, want)
			}
			if got, want := appendOtherCase(nil, []byte(s), 'a'), strings.ToUpper(s); string(got) != want {
				t.Errorf("upper(%q) is %q, not %q", s, got, want)
			}
		}
	}
}
