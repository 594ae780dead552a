package clock

import (
	"slices"
	"testing"
	"time"
)

func TestManualFiresInOrder(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1000)
	m := NewManual(start)
	var fired []string
	note := func(name string) func() {
		return func() { fired = append(fired, name+"@"+m.Now().Sub(start).String()) }
	}
	m.AfterFunc(3*time.Second, note("c"))
	m.AfterFunc(time.Second, func() {
		note("a")()
		m.AfterFunc(time.Second, note("b")) // armed while the clock moves: due within the same move
	})
	stopped := m.AfterFunc(2*time.Second, note("never"))
	timer := m.NewTimer(2500 * time.Millisecond)
	if !stopped.Stop() || stopped.Stop() {
		t.Fatal("Stop reports whether it prevented the call")
	}
	if due, ok := m.NextDue(); !ok || due.Sub(start) != time.Second {
		t.Fatal(due, ok)
	}
	m.Advance(10 * time.Second)
	if want := []string{"a@1s", "b@2s", "c@3s"}; !slices.Equal(fired, want) {
		t.Fatalf("%q, want %q", fired, want)
	}
	if at := <-timer.C(); at.Sub(start) != 2500*time.Millisecond {
		t.Fatal(at)
	}
	m.Set(start)
	if m.Now().Sub(start) != 10*time.Second {
		t.Fatal("the clock went back")
	}
}
