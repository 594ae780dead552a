package expr

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// TestFieldsByWords compares the fields that are found eight bytes at a time with a plain split.
func TestFieldsByWords(t *testing.T) {
	t.Parallel()
	const seed = 5
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	letters := []byte("/a0.\xaf\x2e\x30")
	for range 20_000 {
		s := make([]byte, rnd.IntN(40))
		for i := range s {
			s[i] = letters[rnd.IntN(len(letters))]
		}
		parts := bytes.Split(s, []byte{'/'})
		for n := 1; n < len(parts)+3; n++ {
			var want []byte
			if n <= len(parts) {
				want = parts[n-1]
			}
			if got := byteField(s, '/', n); !bytes.Equal(got, want) {
				t.Fatalf("field %d of %q is %q, want %q", n, s, got, want)
			}
		}
	}
}

// TestCountsByWords compares the number of characters with the library's.
func TestCountsByWords(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(6, 0))
	letters := []rune("aé\u007f\u0080€\U0010ffff\U0001f600z")
	for range 20_000 {
		var s []byte
		for range rnd.IntN(20) {
			s = utf8.AppendRune(s, letters[rnd.IntN(len(letters))])
		}
		if got, want := charCount(s), utf8.RuneCount(s); got != want {
			t.Fatalf("%q has %d characters, want %d", s, got, want)
		}
	}
}
