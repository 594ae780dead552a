package group

import (
	"cmp"
	"slices"
)

// The assignors that the server has. The first is taken when no member asks for one.
const (
	assignorUniform = "uniform"
	assignorRange   = "range"
)

// Assignors are the names that a member may ask for.
var Assignors = []string{assignorUniform, assignorRange}

// subscriber is a member as an assignor sees it.
type subscriber struct {
	id     string
	key    string // what orders members: static ones by their instance
	topics []Topic
	had    Partitions // its last target
}

// assign computes a target for every subscriber. It depends on its arguments alone.
func assign(assignor string, subs []*subscriber) map[string]Partitions {
	slices.SortFunc(subs, func(a, b *subscriber) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) })
	if assignor == assignorRange {
		return assignRanges(subs)
	}
	return assignUniform(subs)
}

// interest is a topic with those who subscribe to it, by their place among the subscribers.
type interest struct {
	topic Topic
	subs  []int
}

// interests returns the topics that somebody subscribes to, by name.
func interests(subs []*subscriber) []interest {
	at := map[TopicID]int{}
	var out []interest
	for i, s := range subs {
		for _, t := range s.topics {
			n, ok := at[t.ID]
			if !ok {
				n = len(out)
				at[t.ID] = n
				out = append(out, interest{topic: t})
			}
			out[n].subs = append(out[n].subs, i)
		}
	}
	slices.SortFunc(out, func(a, b interest) int { return cmp.Compare(a.topic.Name, b.topic.Name) })
	return out
}

// assignRanges gives each subscriber of a topic one range of its partitions. Members with the same subscriptions get the same ranges of topics
// with the same number of partitions, so that topics can be joined.
func assignRanges(subs []*subscriber) map[string]Partitions {
	out := make(map[string]Partitions, len(subs))
	for _, s := range subs {
		out[s.id] = Partitions{}
	}
	for _, in := range interests(subs) {
		each, more := in.topic.Partitions/int32(len(in.subs)), in.topic.Partitions%int32(len(in.subs))
		next := int32(0)
		for i, who := range in.subs {
			n := each
			if int32(i) < more {
				n++
			}
			if n == 0 {
				break
			}
			list := make([]int32, n)
			for j := range list {
				list[j] = next + int32(j)
			}
			next += n
			out[subs[who].id][in.topic.ID] = list
		}
	}
	return out
}

// assignUniform spreads partitions evenly, and moves as few as that allows.
func assignUniform(subs []*subscriber) map[string]Partitions {
	u := uniform{subs: subs, load: make([]int, len(subs)), topics: interests(subs)}
	u.keep()
	if u.homogeneous() {
		u.trim()
	}
	u.handOut()
	u.balance()
	out := make(map[string]Partitions, len(subs))
	for _, s := range subs {
		out[s.id] = Partitions{}
	}
	for t, owners := range u.owner {
		id := u.topics[t].topic.ID
		for p, who := range owners {
			if who >= 0 {
				out[subs[who].id][id] = append(out[subs[who].id][id], int32(p))
			}
		}
	}
	return out
}

// uniform is one run of the uniform assignor.
type uniform struct {
	subs   []*subscriber
	topics []interest
	owner  [][]int // by topic and partition, the place of its subscriber; -1: none yet
	load   []int   // partitions of each subscriber
}

// keep leaves every partition where it was, if that member still wants it. Of several that had it (which happens to targets of different ages) the
// first keeps it.
func (u *uniform) keep() {
	u.owner = make([][]int, len(u.topics))
	for t, in := range u.topics {
		owners := make([]int, in.topic.Partitions)
		for p := range owners {
			owners[p] = -1
		}
		for _, who := range in.subs {
			for _, p := range u.subs[who].had[in.topic.ID] {
				if p >= 0 && int(p) < len(owners) && owners[p] < 0 {
					owners[p] = who
					u.load[who]++
				}
			}
		}
		u.owner[t] = owners
	}
}

// homogeneous reports whether all subscribe to the same topics.
func (u *uniform) homogeneous() bool {
	for _, in := range u.topics {
		if len(in.subs) != len(u.subs) {
			return false
		}
	}
	return true
}

// trim takes from those who have more than their share: total/n each, and one more for total%n of them, those first who have one more already.
func (u *uniform) trim() {
	if len(u.subs) == 0 {
		return
	}
	total := 0
	for _, in := range u.topics {
		total += int(in.topic.Partitions)
	}
	share, extras := total/len(u.subs), total%len(u.subs)
	quota := make([]int, len(u.subs))
	for i := range quota {
		quota[i] = share
		if extras > 0 && u.load[i] > share {
			quota[i]++
			extras--
		}
	}
	for t := len(u.topics) - 1; t >= 0; t-- {
		for p := len(u.owner[t]) - 1; p >= 0; p-- {
			if who := u.owner[t][p]; who >= 0 && u.load[who] > quota[who] {
				u.owner[t][p] = -1
				u.load[who]--
			}
		}
	}
}

// handOut gives partitions without an owner to the subscriber with the fewest, topics with few subscribers first.
func (u *uniform) handOut() {
	order := make([]int, len(u.topics))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(u.topics[a].subs), len(u.topics[b].subs)) })
	for _, t := range order {
		heap := newLoadHeap(u.topics[t].subs, u.load)
		for p, who := range u.owner[t] {
			if who < 0 {
				who = heap.least()
				u.owner[t][p] = who
				u.load[who]++
				heap.fix()
			}
		}
	}
}

// balancePasses bounds the work of balance; each pass only ever makes the spread more even.
const balancePasses = 16

// balance moves partitions from subscribers with more to those with fewer, where subscriptions differ and so handing out was not enough.
func (u *uniform) balance() {
	for range balancePasses {
		moved := false
		for t, in := range u.topics {
			heap := newLoadHeap(in.subs, u.load)
			for p, who := range u.owner[t] {
				to := heap.least()
				if who < 0 || u.load[who]-u.load[to] < 2 {
					continue
				}
				u.owner[t][p] = to
				u.load[who]--
				u.load[to]++
				heap.rebuild()
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// loadHeap is a heap of subscribers, the one with the fewest partitions first; ties go to the first in order.
type loadHeap struct {
	who  []int
	load []int
}

func newLoadHeap(who, load []int) *loadHeap {
	h := &loadHeap{who: slices.Clone(who), load: load}
	h.rebuild()
	return h
}

func (h *loadHeap) least() int { return h.who[0] }

func (h *loadHeap) less(a, b int) bool {
	if h.load[h.who[a]] != h.load[h.who[b]] {
		return h.load[h.who[a]] < h.load[h.who[b]]
	}
	return h.who[a] < h.who[b]
}

// fix restores the order after the load of the first has grown.
func (h *loadHeap) fix() { h.sink(0) }

func (h *loadHeap) rebuild() {
	for i := len(h.who)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h *loadHeap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.who) {
			return
		}
		if child+1 < len(h.who) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.who[i], h.who[child] = h.who[child], h.who[i]
		i = child
	}
}
