package logcheck

import (
	"strings"
	"testing"
)

var (
	part  = Partition{"log", 0}
	other = Partition{"log", 1}
	plain = []Value{{1, 1}, {1, 2}, {1, 3}}
	kept  = Txn{2, 1}
	gone  = Txn{2, 2}
	lost  = Txn{2, 3}
)

// sound is a history without a fault: three plain records, a committed, an aborted and a lost transaction, which was committed.
func sound() *History {
	h := New()
	for i, v := range plain {
		h.Write(v, part, Txn{})
		h.Acknowledge(v, part, int64(i))
	}
	for i, txn := range []Txn{kept, gone, lost} {
		a, b := Value{2, int64(2*i + 1)}, Value{2, int64(2*i + 2)}
		h.Write(a, part, txn)
		h.Write(b, other, txn)
		if txn != lost {
			h.Acknowledge(a, part, int64(3+2*i))
			h.Acknowledge(b, other, int64(2*i))
		}
	}
	h.EndTxn(kept, CommittedEnd)
	h.EndTxn(gone, AbortedEnd)
	h.EndTxn(lost, Unknown)
	return h
}

// logs are the partitions as they should be in the end; the offsets between are those of markers.
func logs(level Isolation) (first, second []entry) {
	first = []entry{{0, plain[0]}, {1, plain[1]}, {2, plain[2]}, {3, Value{2, 1}}, {5, Value{2, 3}}, {7, Value{2, 5}}}
	second = []entry{{0, Value{2, 2}}, {2, Value{2, 4}}, {4, Value{2, 6}}}
	if level == Committed {
		first, second = append(first[:4:4], first[5]), append(second[:1:1], second[2])
	}
	return first, second
}

func (h *History) readAll(name string, level Isolation, p Partition, es []entry) {
	for _, e := range es {
		h.Read(name, level, p, e.offset, e.value)
	}
}

// finish reads the log to its end, with what change makes of it.
func (h *History) finish(change func(level Isolation, first, second []entry) ([]entry, []entry)) {
	for _, level := range []Isolation{Uncommitted, Committed} {
		a, b := logs(level)
		if change != nil {
			a, b = change(level, a, b)
		}
		h.readAll(Final, level, part, a)
		h.readAll(Final, level, other, b)
	}
}

func TestSoundHistory(t *testing.T) {
	t.Parallel()
	h := sound()
	h.Bound("end", part, 3)
	h.Bound("end", part, 8)
	for _, level := range []Isolation{Uncommitted, Committed} {
		a, _ := logs(level)
		h.readAll("live", level, part, a[:4])
	}
	h.Commit("g", part, 2, false)
	h.Deliver("g", part, 0, plain[0])
	h.Deliver("g", part, 0, plain[0])
	h.Deliver("g", part, 1, plain[1])
	h.Commit("g", part, 2, true)
	h.Position("g", part, 2, h.Acked("g", part))
	h.Copy("log", "copy")
	h.finish(nil)
	a, b := logs(Committed)
	for i := range a {
		a[i].offset += 10 // aborted tries of the copier
	}
	h.readAll(Final, Committed, Partition{"copy", 0}, a)
	h.readAll(Final, Committed, Partition{"copy", 1}, b)
	breaches, s := h.Judge()
	if len(breaches) > 0 {
		t.Errorf("a sound history has breaches: %q", breaches)
	}
	if s.Written != 9 || s.Acknowledged != 7 || s.Committed != 1 || s.Aborted != 1 || s.Unknown != 1 || s.Delivered != 2 {
		t.Errorf("it counted %+v", s)
	}
}

// TestBreaches breaks each promise in each way that the checker knows.
func TestBreaches(t *testing.T) {
	t.Parallel()
	type change = func(Isolation, []entry, []entry) ([]entry, []entry)
	tests := []struct {
		name, want string
		during     func(h *History)
		change     change
	}{
		{
			name: "an acknowledged record is gone", want: "nothing acknowledged is lost: 1:3",
			change: func(_ Isolation, a, b []entry) ([]entry, []entry) { return append(a[:2:2], a[3:]...), b },
		},
		{
			name: "a committed record is hidden", want: "nothing acknowledged is lost: 2:1, committed",
			change: func(l Isolation, a, b []entry) ([]entry, []entry) {
				if l == Committed {
					a = append(a[:3:3], a[4:]...)
				}
				return a, b
			},
		},
		{
			name: "an aborted record of the end", want: "nothing aborted is read: final got 2:3",
			change: func(_ Isolation, _, b []entry) ([]entry, []entry) { a, _ := logs(Uncommitted); return a, b },
		},
		{
			name: "an aborted record that was seen for a while", want: "nothing aborted is read: live got 2:4",
			during: func(h *History) { h.Read("live", Committed, other, 2, Value{2, 4}) },
		},
		{
			name: "half of a transaction whose end nobody knows", want: "nothing aborted is read: of transaction 3 of producer 2",
			change: func(l Isolation, a, b []entry) ([]entry, []entry) {
				if l == Committed {
					b = b[:1]
				}
				return a, b
			},
		},
		{
			name: "another value at an offset that was acknowledged", want: "one value per offset: 0 of log-0 was 1:1",
			during: func(h *History) { h.Read("live", Uncommitted, part, 0, plain[1]) },
		},
		{
			name: "another value at an offset that was read", want: "one value per offset: 9 of log-0 was 1:8",
			during: func(h *History) {
				h.Write(Value{1, 8}, part, Txn{})
				h.Write(Value{1, 9}, part, Txn{})
				h.Read("live", Uncommitted, part, 9, Value{1, 8})
				h.Acknowledge(Value{1, 9}, part, 9)
			},
		},
		{
			name: "acknowledged twice", want: "one value per offset: 1:1 was acknowledged at 0 and at 7",
			during: func(h *History) { h.Acknowledge(plain[0], part, 7) },
		},
		{
			name: "nobody wrote it", want: "one value per offset: log-0 has 9:9",
			during: func(h *History) { h.Read("live", Uncommitted, part, 20, Value{9, 9}) },
		},
		{
			name: "a record twice", want: "order: 1:3 of log-0, at 8, stands behind 3",
			change: func(_ Isolation, a, b []entry) ([]entry, []entry) { return append(a, entry{8, plain[2]}), b },
		},
		{
			name: "out of order", want: "order: 1:0 of log-0, at 8, stands behind 3",
			during: func(h *History) { h.Write(Value{1, 0}, part, Txn{}) },
			change: func(_ Isolation, a, b []entry) ([]entry, []entry) { return append(a, entry{8, Value{1, 0}}), b },
		},
		{
			name: "a reader skips", want: "order: record 1 that live got of log-0 (read_committed) was 1:3 at 2; in the end it is 1:2",
			during: func(h *History) {
				h.Read("live", Committed, part, 0, plain[0])
				h.Read("live", Committed, part, 2, plain[2])
			},
		},
		{
			name: "a reader goes back", want: "offsets never go back: live got 0 of log-0 after 1",
			during: func(h *History) {
				h.Read("live", Committed, part, 1, plain[1])
				h.Read("live", Committed, part, 0, plain[0])
			},
		},
		{
			name: "the end goes back", want: "offsets never go back: the end of log-0 was 5, and is 4",
			during: func(h *History) { h.Bound("end", part, 5); h.Bound("end", part, 4) },
		},
		{
			name: "a commit is lost", want: "nothing acknowledged is lost: the group g had committed 2",
			during: func(h *History) {
				h.Commit("g", part, 2, true)
				h.Position("g", part, 1, h.Acked("g", part))
			},
		},
		{
			name: "a group goes back", want: "offsets never go back: the group g was at 2",
			during: func(h *History) {
				h.Commit("g", part, 2, false)
				h.Position("g", part, 2, 0)
				h.Position("g", part, 1, 0)
			},
		},
		{
			name: "a group is where it never was", want: "one value per offset: the group g is at 3",
			during: func(h *History) {
				h.Commit("g", part, 2, false)
				h.Position("g", part, 3, 0)
			},
		},
		{
			name: "a group passes a record", want: "nothing acknowledged is lost: the group g committed 2 of log-0, and no member got 1:1",
			during: func(h *History) {
				h.Deliver("g", part, 1, plain[1])
				h.Commit("g", part, 2, true)
			},
		},
		{
			name: "a copy lacks a record", want: "order: record 4 of log-0: it is 2:5; of its copy copy-0: there is none",
			during: func(h *History) {
				h.Copy("log", "copy")
				a, b := logs(Committed)
				h.readAll(Final, Committed, Partition{"copy", 0}, a[:4])
				h.readAll(Final, Committed, Partition{"copy", 1}, b)
			},
		},
		{
			name: "a copy has a record twice", want: "order: record 1 of log-1: it is 2:6; of its copy copy-1: it is 2:2",
			during: func(h *History) {
				h.Copy("log", "copy")
				a, b := logs(Committed)
				h.readAll(Final, Committed, Partition{"copy", 0}, a)
				h.readAll(Final, Committed, Partition{"copy", 1}, []entry{b[0], {1, b[0].value}, b[1]})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := sound()
			if tt.during != nil {
				tt.during(h)
			}
			h.finish(tt.change)
			breaches, _ := h.Judge()
			if !strings.Contains(strings.Join(breaches, "\n"), tt.want) {
				t.Errorf("it found %q, want %q", breaches, tt.want)
			}
		})
	}
}
