package group

import (
	"slices"
	"time"
)

func (g *Group) join(now time.Time, ev *Join, out *Output) {
	refuse := func(c Code) {
		out.Replies = append(out.Replies, Reply{Token: ev.Token, Code: c, Generation: -1, MemberID: ev.MemberID})
	}
	switch {
	case ev.Session < g.cfg.MinSession || ev.Session > g.cfg.MaxSession:
		refuse(InvalidSession)
		return
	case len(ev.Protocols) == 0 || ev.Kind == "":
		refuse(InconsistentProtocol)
		return
	case !g.compatible(ev):
		refuse(InconsistentProtocol)
		return
	}
	if ev.MemberID == "" {
		g.joinNew(now, ev, out, refuse)
		return
	}
	if _, ok := g.pending[ev.MemberID]; ok && ev.Instance == "" {
		delete(g.pending, ev.MemberID)
		g.add(now, ev, ev.MemberID, out)
		return
	}
	m, code := g.find(ev.MemberID, ev.Instance)
	if code != OK {
		refuse(code)
		return
	}
	g.rejoin(now, m, ev, out)
}

// compatible reports whether every member could use one of the protocols that the newcomer offers.
func (g *Group) compatible(ev *Join) bool {
	if len(g.members) == 0 {
		return true
	}
	if ev.Kind != g.kind {
		return false
	}
	return slices.ContainsFunc(ev.Protocols, func(p Protocol) bool {
		for id, m := range g.members {
			if id != ev.MemberID && (ev.Instance == "" || m.Instance != ev.Instance) && !m.offers(p.Name) {
				return false
			}
		}
		return true
	})
}

func (g *Group) joinNew(now time.Time, ev *Join, out *Output, refuse func(Code)) {
	if old, ok := g.static[ev.Instance]; ok && ev.Instance != "" {
		g.replaceStatic(now, g.members[old], ev, out)
		return
	}
	if len(g.members)+len(g.pending) >= g.cfg.MaxMembers {
		refuse(GroupFull)
		return
	}
	if ev.KnownIDOnly && ev.Instance == "" {
		g.pending[ev.NewID] = now.Add(ev.Session)
		out.Replies = append(out.Replies, Reply{Token: ev.Token, Code: MemberIDRequired, Generation: -1, MemberID: ev.NewID})
		return
	}
	g.add(now, ev, ev.NewID, out)
}

// add takes a new member in and begins a rebalance.
func (g *Group) add(now time.Time, ev *Join, id string, out *Output) {
	if len(g.members) == 0 {
		g.kind = ev.Kind
	}
	g.seq++
	m := &member{ID: id, Instance: ev.Instance, seq: g.seq}
	m.update(ev)
	m.join = ev.Token
	m.touch(now)
	g.members[id] = m
	if ev.Instance != "" {
		g.static[ev.Instance] = id
	}
	switch {
	case g.state != PreparingRebalance:
		g.prepare(now, out)
	case g.initial: // a newcomer prolongs the initial wait, up to the rebalance timeout
		limit := g.opened.Add(g.longestRebalance())
		g.deadline = earlier(now.Add(g.cfg.InitialDelay), limit)
	}
	g.tryBegin(now, out)
}

func (m *member) update(ev *Join) {
	m.ClientID, m.Host = ev.ClientID, ev.Host
	m.Session, m.Rebalance = ev.Session, ev.Rebalance
	if m.Rebalance <= 0 { // protocol v0 has no rebalance timeout
		m.Rebalance = ev.Session
	}
	m.Protocols = ev.Protocols
}

// rejoin is a known member that joins again.
func (g *Group) rejoin(now time.Time, m *member, ev *Join, out *Output) {
	m.touch(now)
	same := sameProtocols(m.Protocols, ev.Protocols)
	switch {
	case g.state == CompletingRebalance && same, g.state == Stable && same && m.ID != g.leader:
		// Its last answer was lost, or it asks for no reason: the generation stands.
		m.ClientID, m.Host = ev.ClientID, ev.Host
		out.Replies = append(out.Replies, g.joinReply(m, ev.Token))
		return
	}
	if m.join != 0 { // it gave up waiting on another connection
		out.Replies = append(out.Replies, Reply{Token: m.join, Code: RebalanceInProgress, Generation: -1, MemberID: m.ID})
	}
	m.update(ev)
	m.join = ev.Token
	if g.state != PreparingRebalance {
		g.prepare(now, out)
	}
	g.tryBegin(now, out)
}

// replaceStatic lets a static member that was restarted take its old place under a new id. In a stable group whose strategy stays the same nobody
// else notices. What the member says of itself does not count: it may well say what it holds, which is nothing after a restart.
func (g *Group) replaceStatic(now time.Time, old *member, ev *Join, out *Output) {
	for _, t := range []Token{old.join, old.sync} {
		if t != 0 {
			out.Replies = append(out.Replies, Reply{Token: t, Code: FencedInstance, Generation: -1, MemberID: old.ID})
		}
	}
	oldID := old.ID
	delete(g.members, oldID)
	m := old
	m.ID, m.join, m.sync = ev.NewID, 0, 0
	m.update(ev)
	m.touch(now)
	g.members[m.ID] = m
	g.static[m.Instance] = m.ID
	wasLeader := g.leader == oldID
	if wasLeader {
		g.leader = m.ID
	}
	if g.state == Stable && g.protocol == g.choose() {
		r := g.joinReply(m, ev.Token)
		if wasLeader {
			if ev.SkipAssignment {
				r.SkipAssignment = true
			} else { // an older client assigns when it is the leader, so it is not told
				r.Leader, r.Members = oldID, nil
			}
		}
		out.Replies = append(out.Replies, r)
		out.Persist = true
		return
	}
	m.join = ev.Token
	if g.state != PreparingRebalance {
		g.prepare(now, out)
	}
	g.tryBegin(now, out)
}

// prepare begins a rebalance: all members have to join again.
func (g *Group) prepare(now time.Time, out *Output) {
	g.cancelSyncs(now, out)
	g.initial = g.state == Empty
	if g.initial {
		g.opened = now
		g.deadline = now.Add(g.cfg.InitialDelay)
	} else {
		g.deadline = now.Add(g.longestRebalance())
	}
	g.state = PreparingRebalance
}

func (g *Group) cancelSyncs(now time.Time, out *Output) {
	for _, m := range g.inOrder() {
		if m.sync != 0 {
			out.Replies = append(out.Replies, Reply{Token: m.sync, Code: RebalanceInProgress})
			m.sync = 0
			m.touch(now) // it was alive while it waited
		}
		m.synced = false
	}
}

func (g *Group) longestRebalance() time.Duration {
	var d time.Duration
	for _, m := range g.members {
		d = max(d, m.Rebalance)
	}
	return d
}

// tryBegin begins the next generation if everyone has joined, or the time is up.
func (g *Group) tryBegin(now time.Time, out *Output) {
	if g.state != PreparingRebalance {
		return
	}
	due := !now.Before(g.deadline)
	if !due {
		if g.initial || len(g.pending) > 0 {
			return
		}
		for _, m := range g.members {
			if m.join == 0 {
				return
			}
		}
	}
	g.begin(now, out)
}

// begin starts the next generation with those who have joined. A static member that has not is kept until its session ends.
func (g *Group) begin(now time.Time, out *Output) {
	g.initial = false
	joined := 0
	for _, m := range g.inOrder() {
		switch {
		case m.join != 0:
			joined++
		case m.Instance == "":
			g.drop(m)
		}
	}
	if len(g.members) == 0 {
		g.becomeEmpty(now, out)
		return
	}
	if joined == 0 { // only static members, none of them back yet
		g.deadline = now.Add(g.longestRebalance())
		return
	}
	g.generation = nextGeneration(g.generation)
	g.protocol = g.choose()
	if l := g.members[g.leader]; l == nil || l.join == 0 {
		for _, m := range g.inOrder() {
			if m.join != 0 {
				g.leader = m.ID
				break
			}
		}
	}
	g.state, g.assigned = CompletingRebalance, false
	g.deadline = now.Add(g.longestRebalance())
	for _, m := range g.inOrder() {
		m.synced, m.Assignment = false, nil
		if m.join != 0 {
			out.Replies = append(out.Replies, g.joinReply(m, m.join))
			m.join = 0
			m.touch(now)
		}
	}
}

// nextGeneration wraps after two thousand million rebalances, for the protocol has no larger number.
func nextGeneration(n int32) int32 {
	if n == 1<<31-1 {
		return 1
	}
	return n + 1
}

func (g *Group) becomeEmpty(now time.Time, out *Output) {
	g.generation = nextGeneration(g.generation)
	g.state, g.protocol, g.leader = Empty, "", ""
	g.initial = false
	g.emptySince = now
	out.Persist = true
}

func (g *Group) joinReply(m *member, t Token) Reply {
	r := Reply{Token: t, Generation: g.generation, Kind: g.kind, Protocol: g.protocol, Leader: g.leader, MemberID: m.ID}
	if m.ID == g.leader {
		r.Members = g.Members()
	}
	return r
}

// choose picks the strategy that all members offer and most of them prefer; ties go to the one that the oldest member prefers.
func (g *Group) choose() string {
	members := g.inOrder()
	votes := map[string]int{}
	var order []string
	for _, m := range members {
		for _, p := range m.Protocols {
			if slices.ContainsFunc(members, func(o *member) bool { return !o.offers(p.Name) }) {
				continue
			}
			if votes[p.Name] == 0 {
				order = append(order, p.Name)
			}
			votes[p.Name]++
			break
		}
	}
	best := ""
	for _, name := range order {
		if best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

func (g *Group) sync(now time.Time, ev *Sync, out *Output) {
	refuse := func(c Code) { out.Replies = append(out.Replies, Reply{Token: ev.Token, Code: c}) }
	m, code := g.find(ev.MemberID, ev.Instance)
	switch {
	case code != OK:
		refuse(code)
		return
	case ev.Generation != g.generation:
		refuse(IllegalGeneration)
		return
	case ev.Kind != "" && ev.Kind != g.kind, ev.Protocol != "" && ev.Protocol != g.protocol && g.state != PreparingRebalance:
		refuse(InconsistentProtocol)
		return
	}
	m.touch(now)
	switch g.state {
	case Empty:
		refuse(UnknownMember)
	case PreparingRebalance:
		refuse(RebalanceInProgress)
	case Stable:
		m.synced = true
		out.Replies = append(out.Replies, g.syncReply(m, ev.Token))
	case CompletingRebalance:
		if m.sync != 0 {
			out.Replies = append(out.Replies, Reply{Token: m.sync, Code: RebalanceInProgress})
		}
		m.sync, m.synced = ev.Token, true
		if m.ID != g.leader {
			return
		}
		for id, o := range g.members {
			o.Assignment = ev.Assignments[id]
		}
		g.state, g.assigned = Stable, true
		out.Persist = true
		for _, o := range g.inOrder() {
			if o.sync != 0 {
				out.Replies = append(out.Replies, g.syncReply(o, o.sync))
				o.sync = 0
				o.touch(now)
			}
		}
	}
}

func (g *Group) syncReply(m *member, t Token) Reply {
	return Reply{Token: t, Kind: g.kind, Protocol: g.protocol, Assignment: m.Assignment}
}

func (g *Group) leave(now time.Time, ev *Leave, out *Output) {
	r := Reply{Token: ev.Token}
	removed := false
	for _, l := range ev.Members {
		if _, ok := g.pending[l.MemberID]; ok && l.Instance == "" {
			delete(g.pending, l.MemberID)
			removed = true
			r.Leavers = append(r.Leavers, OK)
			continue
		}
		id := l.MemberID
		if id == "" && l.Instance != "" {
			id = g.static[l.Instance]
		}
		m, code := g.find(id, l.Instance)
		r.Leavers = append(r.Leavers, code)
		if code == OK {
			g.remove(now, m, out)
			removed = true
		}
	}
	if removed {
		g.tryBegin(now, out)
	}
	out.Replies = append(out.Replies, r)
}

// remove takes a member out and begins a rebalance unless one is under way.
func (g *Group) remove(now time.Time, m *member, out *Output) {
	for _, t := range []Token{m.join, m.sync} {
		if t != 0 {
			out.Replies = append(out.Replies, Reply{Token: t, Code: UnknownMember, Generation: -1, MemberID: m.ID})
		}
	}
	g.drop(m)
	if g.state == Stable || g.state == CompletingRebalance {
		g.prepare(now, out)
	}
	if len(g.members) == 0 && g.state == PreparingRebalance && len(g.pending) == 0 {
		g.cancelSyncs(now, out)
		g.becomeEmpty(now, out)
	}
}

func (g *Group) drop(m *member) {
	delete(g.members, m.ID)
	if m.Instance != "" {
		delete(g.static, m.Instance)
	}
	if g.leader == m.ID {
		g.leader = ""
	}
}

// expire lets what is overdue happen: ids that were not used, members that were silent, phases that took too long.
func (g *Group) expire(now time.Time, out *Output) {
	for id, until := range g.pending {
		if !now.Before(until) {
			delete(g.pending, id)
		}
	}
	for _, m := range g.inOrder() {
		// Whoever waits for an answer of ours is alive by definition.
		if m.join == 0 && m.sync == 0 && !now.Before(m.deadline) {
			g.remove(now, m, out)
		}
	}
	if g.state == CompletingRebalance && !now.Before(g.deadline) {
		silent := slices.DeleteFunc(g.inOrder(), func(m *member) bool { return m.synced })
		for _, m := range silent { // chosen before the first goes, for that begins a rebalance
			g.remove(now, m, out)
		}
		if g.state == CompletingRebalance { // all have asked, and the leader has brought nothing: cannot be, but must not hang
			g.prepare(now, out)
		}
	}
	if g.state == PreparingRebalance && len(g.members) == 0 && len(g.pending) == 0 {
		g.becomeEmpty(now, out)
	}
	g.tryBegin(now, out)
}

func (g *Group) nextDeadline() time.Time {
	var at time.Time
	add := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, until := range g.pending {
		add(until)
	}
	for _, m := range g.members {
		if m.join == 0 && m.sync == 0 {
			add(m.deadline)
		}
	}
	if g.state == PreparingRebalance || g.state == CompletingRebalance {
		add(g.deadline)
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
