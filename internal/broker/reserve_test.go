package broker

import "testing"

func TestReserve(t *testing.T) {
	t.Parallel()
	r := Reserve{BallastBytes: 1000, MinFree: 400}
	var s reserveState
	for i, step := range []struct {
		free   int64
		want   reserveState
		action reserveAction
	}{
		{1499, reserveState{}, ballastKeep}, // no room for the ballast yet
		{1500, reserveState{false, true}, ballastCreate},
		{400, reserveState{false, true}, ballastKeep},
		{399, reserveState{true, false}, ballastDrop}, // low: the ballast goes first
		{1399, reserveState{true, false}, ballastKeep},
		{1499, reserveState{true, false}, ballastKeep}, // there must be room for the ballast again
		{1500, reserveState{false, true}, ballastCreate},
	} {
		var action reserveAction
		if s, action = r.decide(s, step.free); s != step.want || action != step.action {
			t.Fatalf("step %d, %d free: %+v and action %d, want %+v and %d", i, step.free, s, action, step.want, step.action)
		}
	}
}
