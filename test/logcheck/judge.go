package logcheck

import "slices"

// Summary counts what a judgement rests on.
type Summary struct {
	Written, Acknowledged        int
	Committed, Aborted, Unknown  int // transactions
	Records, Visible, ReaderGots int // at read_uncommitted and read_committed in the end; and what live readers got
	Delivered                    int
}

// Judge compares everything with the log as it is in the end, and returns all breaches.
func (h *History) Judge() ([]string, Summary) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var s Summary
	visible := h.judgeWrites(&s)
	h.judgeTransactions(&s, visible)
	h.judgeOrder(&s)
	h.judgeReaders(&s)
	h.judgeGroups(&s)
	for _, c := range h.copies {
		h.judgeCopy(c)
	}
	return slices.Clone(h.breaches), s
}

// final is a partition in the end.
func (h *History) final(p Partition, level Isolation) []entry {
	if r := h.readers[readerKey{Final, p, level}]; r != nil {
		return r.got
	}
	return nil
}

// isCopy tells whether others' records are copied into a topic.
func (h *History) isCopy(topic string) bool {
	return slices.ContainsFunc(h.copies, func(c copyOf) bool { return c.to == topic })
}

// judgeWrites looks for what was acknowledged, and returns what a reader of committed records sees.
func (h *History) judgeWrites(s *Summary) map[Value]bool {
	there, visible := map[Value]int64{}, map[Value]bool{}
	for key, r := range h.readers {
		if key.name != Final || h.isCopy(key.Topic) {
			continue
		}
		for _, e := range r.got {
			if key.Isolation == Committed {
				visible[e.value] = true
			} else {
				there[e.value] = e.offset
			}
		}
	}
	for v, w := range h.written {
		s.Written++
		if !w.acked {
			continue
		}
		s.Acknowledged++
		if at, ok := there[v]; !ok {
			h.breach("nothing acknowledged is lost: %s was acknowledged at %d of %s, and is gone", v, w.offset, w.partition)
		} else if at != w.offset {
			h.breach("one value per offset: %s was acknowledged at %d of %s, and is at %d", v, w.offset, w.partition, at)
		}
		if (w.txn == Txn{} || h.ends[w.txn] == CommittedEnd) && !visible[v] {
			h.breach("nothing acknowledged is lost: %s, committed, was acknowledged at %d of %s, and a reader of committed records does not see it", v, w.offset, w.partition)
		}
	}
	for v := range visible {
		if _, ok := there[v]; !ok {
			h.breach("one value per offset: %s is there at read_committed, and not at read_uncommitted", v)
		}
	}
	return visible
}

// judgeTransactions looks for what was aborted among all that readers of committed records ever got, and for halves of transactions.
func (h *History) judgeTransactions(s *Summary, visible map[Value]bool) {
	for key, r := range h.readers {
		if key.Isolation != Committed {
			continue
		}
		for _, e := range r.got {
			if w := h.written[e.value]; w != nil && w.txn != (Txn{}) && h.ends[w.txn] == AbortedEnd {
				h.breach("nothing aborted is read: %s got %s at %d of %s, of an aborted transaction", key.name, e.value, e.offset, key.Partition)
			}
		}
	}
	type halves struct{ seen, hidden Value }
	split := map[Txn]*halves{}
	for key, r := range h.readers {
		if key.name != Final || key.Isolation != Uncommitted || h.isCopy(key.Topic) {
			continue
		}
		for _, e := range r.got {
			w := h.written[e.value]
			if w == nil || w.txn == (Txn{}) {
				continue
			}
			x := split[w.txn]
			if x == nil {
				x = &halves{}
				split[w.txn] = x
			}
			if visible[e.value] {
				x.seen = e.value
			} else {
				x.hidden = e.value
			}
		}
	}
	for txn, x := range split {
		if x.seen != (Value{}) && x.hidden != (Value{}) {
			h.breach("nothing aborted is read: of transaction %d of producer %d, %s is seen and %s is not", txn.Number, txn.Producer, x.seen, x.hidden)
		}
	}
	for _, end := range h.ends {
		switch end {
		case CommittedEnd:
			s.Committed++
		case AbortedEnd:
			s.Aborted++
		default:
			s.Unknown++
		}
	}
}

// judgeOrder looks at the order of each producer's records in each partition; who writes twice is out of order too.
func (h *History) judgeOrder(s *Summary) {
	for key, r := range h.readers {
		if key.name != Final {
			continue
		}
		if key.Isolation == Committed {
			s.Visible += len(r.got)
		} else {
			s.Records += len(r.got)
			if h.isCopy(key.Topic) {
				continue // who copies may abort, and write again
			}
		}
		last := map[int]int64{}
		for _, e := range r.got {
			if before, ok := last[e.value.Producer]; ok && e.value.Seq <= before {
				h.breach("order: %s of %s, at %d, stands behind %d of the same producer (%s)", e.value, key.Partition, e.offset, before, key.Isolation)
			}
			last[e.value.Producer] = e.value.Seq
		}
	}
}

// judgeReaders compares what readers got while it all happened with the log's beginning: they skipped nothing.
func (h *History) judgeReaders(s *Summary) {
	for key, r := range h.readers {
		if key.name == Final {
			continue
		}
		s.ReaderGots += len(r.got)
		want := h.final(key.Partition, key.Isolation)
		for i, e := range r.got {
			if i >= len(want) || want[i] != e {
				h.breach("order: record %d that %s got of %s (%s) was %s at %d; in the end %s", i, key.name, key.Partition, key.Isolation, e.value, e.offset, nth(want, i))
				break
			}
		}
	}
}

func nth(es []entry, i int) string {
	if i >= len(es) {
		return "there is none"
	}
	return "it is " + es[i].value.String()
}

// judgeGroups looks for records that a group has passed without any member having got them.
func (h *History) judgeGroups(s *Summary) {
	for key, g := range h.groups {
		s.Delivered += len(g.delivered)
		for _, e := range h.final(key.Partition, Committed) {
			if e.offset < g.acked && !g.delivered[e.offset] {
				h.breach("nothing acknowledged is lost: the group %s committed %d of %s, and no member got %s at %d", key.name, g.acked, key.Partition, e.value, e.offset)
				break
			}
		}
	}
}

// judgeCopy compares a copy with its original, partition by partition.
func (h *History) judgeCopy(c copyOf) {
	for key := range h.readers {
		if key.name != Final || key.Isolation != Committed || key.Topic != c.from {
			continue
		}
		to := Partition{c.to, key.Index}
		from, got := h.final(key.Partition, Committed), h.final(to, Committed)
		for i := range max(len(from), len(got)) {
			if i >= len(from) || i >= len(got) || from[i].value != got[i].value {
				h.breach("order: record %d of %s: %s; of its copy %s: %s", i, key.Partition, nth(from, i), to, nth(got, i))
				break
			}
		}
	}
}
