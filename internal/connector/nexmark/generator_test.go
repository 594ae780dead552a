package nexmark

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// TestFirstEvents compares with what the stock Java generator made, with a seeded stream an event.
func TestFirstEvents(t *testing.T) {
	t.Parallel()
	const (
		events = 200_000
		size   = 59_358_480
		sum    = "fce9942052292646af1ab19115e320e436381049cecc14727b043fc00026b2c9"
	)
	g := New(DefaultConfig())
	hash := sha256.New()
	var line []byte
	var scratch Scratch
	total := 0
	for k := range int64(events) {
		line = g.AppendJSON(line[:0], k, true, &scratch)
		line = append(line, '\n')
		total += len(line)
		hash.Write(line)
	}
	if total != size {
		t.Errorf("%d events are %d bytes, want %d", events, total, size)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		t.Errorf("SHA-256 of %d events is %s, want %s", events, got, sum)
	}
}

func TestShuffledWithinGroups(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.OutOfOrder = 100
	g := New(c)
	highest := int64(0)
	for k := range int64(5_000) {
		if got := g.MaxTimeMillisBefore(k); k > 0 && got != highest {
			t.Fatalf("largest time before event %d is %d, want %d", k, got, highest)
		}
		highest = max(highest, g.TimeMillis(k))
	}
}

func BenchmarkBid(b *testing.B) {
	g := New(DefaultConfig())
	var bid BidEvent
	b.ReportAllocs()
	k := int64(0)
	for b.Loop() {
		if k++; KindOf(g.ID(k)) == Bid {
			g.Bid(k, &bid)
		}
	}
}
