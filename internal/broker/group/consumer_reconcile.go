package group

// reconcile moves a member one step towards its target, if it can. owned is what it holds, if it says so: what it has to let go is free for others only when
// it says that it does not hold it any more.
//
//	reconciled -> unrevoked: there is something to let go. The member stays at its epoch until it has.
//	any --------> unreleased: at the target's epoch, but others hold something of it
//	any --------> reconciled: at the target's epoch, with all of it
func (c *Consumer) reconcile(m *consumer, owned Partitions, known bool) (moved bool) {
	switch m.State {
	case reconciled:
		if m.Epoch == c.targetEpoch {
			return false
		}
	case unrevoked:
		if m.stillHolds(m.Revoking, owned, known) {
			return false
		}
	case unreleased:
		if m.Epoch == c.targetEpoch && !c.somethingFree(m) {
			return false
		}
	}
	c.advance(m, owned, known)
	return true
}

// stillHolds reports whether the member holds, or may hold, something of what it has to let go.
func (m *consumer) stillHolds(revoking held, owned Partitions, known bool) bool {
	if !known {
		return len(revoking) > 0
	}
	for id, list := range owned {
		for _, p := range list {
			if revoking.has(id, p) {
				return true
			}
		}
	}
	return false
}

// somethingFree reports whether a member that waits for partitions could get one of them.
func (c *Consumer) somethingFree(m *consumer) bool {
	for id, list := range m.Target {
		for _, p := range list {
			if _, taken := c.holders[id][p]; !taken {
				return true
			}
		}
	}
	return false
}

// advance computes the member's next assignment.
func (c *Consumer) advance(m *consumer, owned Partitions, known bool) {
	c.change(m)
	// What had to be let go has been, or reconcile would not be here.
	for id, list := range m.Revoking {
		for p := range list {
			c.release(m.ID, id, p)
		}
	}
	m.Revoking = nil

	keep, revoke := held{}, held{}
	for id, list := range m.Assigned {
		for p, since := range list {
			if m.Target.has(id, p) {
				keep.put(id, p, since)
			} else {
				revoke.put(id, p, since)
			}
		}
	}
	if m.stillHolds(revoke, owned, known) {
		m.State, m.Assigned, m.Revoking = unrevoked, keep, revoke
		return
	}
	for id, list := range revoke {
		for p := range list {
			c.release(m.ID, id, p)
		}
	}
	m.moveTo(c.targetEpoch)
	m.State = reconciled
	for id, list := range m.Target {
		for _, p := range list {
			if keep.has(id, p) {
				continue
			}
			if _, taken := c.holders[id][p]; taken {
				m.State = unreleased
				continue
			}
			keep.put(id, p, c.targetEpoch)
			c.hold(m.ID, id, p)
		}
	}
	m.Assigned = keep
}
