package broker

import "slices"

// span is what one unit wrote into one partition: the offsets [base, end).
type span struct {
	p         *Partition
	base, end int64
	producer  int64 // whose transaction it belongs to; -1: none
	marker    bool  // it ends that transaction
}

// atomicUnit is a journal unit with more than one batch that readers must see whole or not at all: a SQL
// transaction, or an epoch with several sinks.
type atomicUnit struct {
	lsn   uint64
	spans []span
}

// lowerToWholeUnits lowers ends until no unit is seen in part: afterwards each unit lies, as far as the given partitions go, either
// wholly before the ends or wholly behind them. Units must be in journal order.
//
// One pass in that order reaches the fixpoint: lowering an end to the start of a unit can split only units that
// come later in the journal (an earlier one ends at or before that start in every partition they share), and those are yet to be visited.
func lowerToWholeUnits(units []atomicUnit, ends map[*Partition]int64) {
	for i := range units {
		whole := true
		for _, s := range units[i].spans {
			if end, ok := ends[s.p]; ok && end < s.end {
				whole = false
				break
			}
		}
		if whole {
			continue
		}
		for _, s := range units[i].spans {
			if end, ok := ends[s.p]; ok && end > s.base {
				ends[s.p] = s.base
			}
		}
	}
}

// raiseFor returns the unit that keeps every one of the ends at its from, with data behind it: the first one, in journal order,
// that starts exactly where a partition stands. The caller raises its limits to take that unit whole.
func blockingUnit(units []atomicUnit, from map[*Partition]int64) (atomicUnit, bool) {
	for _, u := range units {
		for _, s := range u.spans {
			if at, ok := from[s.p]; ok && at >= s.base && at < s.end {
				return u, true
			}
		}
	}
	return atomicUnit{}, false
}

// needed reports whether a reader that stands at the given positions may still have to keep the unit whole.
func (u atomicUnit) needed(at map[*Partition]int64) bool {
	for _, s := range u.spans {
		if pos, ok := at[s.p]; ok && pos < s.end {
			return true
		}
	}
	return false
}

// held reports whether an open transaction keeps readers from a part of the unit.
func (u atomicUnit) held() bool {
	for _, s := range u.spans {
		if s.end > s.p.decided.Load() && !s.p.deleted.Load() {
			return true
		}
	}
	return false
}

// merged is one unit for two neighbours in journal order. Readers then see both or none, which is stricter than needed but never
// wrong: it is how the list stays bounded under a reader that is far behind.
func merged(a, b atomicUnit) atomicUnit {
	out := atomicUnit{lsn: b.lsn, spans: slices.Clone(a.spans)}
next:
	for _, s := range b.spans {
		for i := range out.spans {
			if out.spans[i].p == s.p {
				out.spans[i].end = s.end
				continue next
			}
		}
		out.spans = append(out.spans, s)
	}
	return out
}

// halve merges neighbours in pairs.
func halve(units []atomicUnit) []atomicUnit {
	out := units[:0]
	for i := 0; i < len(units); i += 2 {
		if i+1 == len(units) {
			out = append(out, units[i])
			break
		}
		out = append(out, merged(units[i], units[i+1]))
	}
	clear(units[len(out):])
	return out
}
