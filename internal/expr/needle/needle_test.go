package needle

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 picks one")

func TestIndex(t *testing.T) {
	t.Parallel()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	r := rand.New(rand.NewPCG(s, s))
	found := 0
	for range 200_000 {
		letters := 1 + r.IntN(4)
		random := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte('a' + r.IntN(letters))
			}
			return b
		}
		str, text := random(r.IntN(14)), random(r.IntN(60))
		for range r.IntN(3) { // the needle, or nearly so
			if at := r.IntN(len(text) + 1); at < len(text) {
				n := copy(text[at:], str)
				if n > 0 && r.IntN(3) == 0 {
					text[at+r.IntN(n)] = 'z'
				}
			}
		}
		want := bytes.Index(text, str)
		if want >= 0 {
			found++
		}
		if got := New(str).Index(text); got != want {
			t.Fatalf("%q is in %q at %d, not %d", str, text, want, got)
		}
	}
	if found < 1000 {
		t.Errorf("only %d needles were there", found)
	}
	long := bytes.Repeat([]byte("ab"), 400)
	for _, n := range []int{minSize - 1, minSize, maxSize, maxSize + 1, 800, 801} {
		str := append(bytes.Repeat([]byte("ba"), n)[:n:n], 'c')
		text := append(long, str...)
		if got, want := New(str).Index(text), bytes.Index(text, str); got != want {
			t.Errorf("a needle of %d bytes is at %d, not %d", n+1, want, got)
		}
	}
}

// BenchmarkIndex looks for a parameter in addresses, half of which have it.
func BenchmarkIndex(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var texts [][]byte
	for i := range 1024 {
		x := []byte("https://www.nexmark.com/khqr_/tbzqq/dlqxe/item.htm?query=1&channel_id=1234567")
		for i := 24; i < 41; i++ {
			if x[i] != '/' {
				x[i] = "abcdefghijklmnopqrstuvwxy_"[r.IntN(26)]
			}
		}
		if i%2 == 0 {
			x = x[:58]
		}
		texts = append(texts, x)
	}
	n := New([]byte("channel_id="))
	b.Run("needle", func(b *testing.B) {
		for b.Loop() {
			for _, x := range texts {
				n.Index(x)
			}
		}
	})
	b.Run("bytes", func(b *testing.B) {
		for b.Loop() {
			for _, x := range texts {
				bytes.Index(x, n.str)
			}
		}
	})
}
