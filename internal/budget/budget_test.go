package budget

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTree(t *testing.T) {
	t.Parallel()
	root := New("node", 100)
	a, b := root.Child("a", 60), root.Child("b", 0)
	for _, step := range []struct {
		on   *Budget
		n    int64
		want bool
	}{{a, 50, true}, {a, 20, false}, {b, 50, true}, {b, 1, false}, {a, 1, false}} {
		if got := step.on.TryAcquire(step.n); got != step.want {
			t.Errorf("%s TryAcquire(%d) = %v", step.on.Name(), step.n, got)
		}
	}
	b.Force(10)
	if root.Used() != 110 || root.Free() != -10 || a.Free() != -10 {
		t.Errorf("used %d, free %d and %d", root.Used(), root.Free(), a.Free())
	}
	b.Close()
	if root.Used() != 50 || root.Peak() != 110 || len(root.Tree()) != 2 {
		t.Errorf("after Close: used %d, peak %d, tree %v", root.Used(), root.Peak(), root.Tree())
	}
	if err := a.Acquire(context.Background(), 61); err == nil || !strings.Contains(err.Error(), "budget a of 60 bytes") {
		t.Errorf("what never fits: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("giving back too much did not panic")
		}
	}()
	a.Release(51)
}

// TestAcquireWaits: in order of arrival, a small request does not overtake a large one of the same budget, and one that gives up
// lets the next one in.
func TestAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := New("node", 100)
		a, b := root.Child("a", 50), root.Child("b", 0)
		a.Force(40)
		var mu sync.Mutex
		var order []string
		wait := func(ctx context.Context, name string, on *Budget, n int64) {
			go func() {
				err := on.Acquire(ctx, n)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					name += " gave up"
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
				order = append(order, name)
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(context.Background())
		wait(ctx, "large", a, 45)
		wait(context.Background(), "small", a, 5)
		wait(context.Background(), "other", b, 20)
		check := func(want string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(order) // who goes on at once may say so in any order
			if got := strings.Join(order, ", "); got != want {
				t.Errorf("went on: %q, want %q", got, want)
			}
		}
		check("other")
		if a.TryAcquire(1) {
			t.Error("TryAcquire overtook who waits")
		}
		cancel()
		check("large gave up, other, small")
		a.Release(45)
		b.Release(20)
		if root.Used() != 0 {
			t.Errorf("%d bytes in use", root.Used())
		}
	})
}

func TestCollector(t *testing.T) {
	t.Parallel()
	root := New("node", 100)
	root.Child("state", 0).Force(3)
	root.Child("state", 0).Force(4)
	reg := prometheus.NewRegistry()
	reg.MustRegister(root.Collector())
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"leat_memory_bytes node": 7, "leat_memory_bytes node/state": 7, "leat_memory_limit_bytes node": 100}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %v, want %v", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("metrics %v", got)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	crossed := 0
	b := New("queries", 0)
	b.Watch(100, func() { crossed++ })
	for _, s := range []struct {
		change int64
		want   int
	}{{100, 0}, {1, 1}, {50, 1}, {-60, 1}, {-45, 2}, {40, 2}, {40, 3}} {
		if s.change > 0 {
			b.Force(s.change)
		} else {
			b.Release(-s.change)
		}
		if crossed != s.want {
			t.Errorf("after %+d: %d crossings, want %d", s.change, crossed, s.want)
		}
	}
}

func TestMeasuredPoolsAreAskedWhenTheTreeIsListed(t *testing.T) {
	t.Parallel()
	root := New("node", 0)
	used := int64(10)
	root.Child("database", 0).Measured("cache", 64, func() int64 { return used })
	root.Child("engine", 0).Force(5)
	for _, want := range []int64{10, 30, 0} {
		used = want
		tree := root.Tree()
		if tree[0].Used != want+5 || tree[1].Used != want || tree[2].Used != want {
			t.Errorf("tree %+v with %d measured", tree, want)
		}
	}
	if peak := root.Tree()[2].Peak; peak != 30 {
		t.Errorf("peak %d, want 30", peak)
	}
}
