package group

import (
	"encoding/json"
	"fmt"
	"time"
)

// stored is a group as it is kept: what members and assignments a restart must find, so that members go on without a rebalance.
type stored struct {
	Version    int       `json:"v"`
	State      State     `json:"state"`
	Generation int32     `json:"generation"`
	Kind       string    `json:"kind,omitempty"`
	Protocol   string    `json:"protocol,omitempty"`
	Leader     string    `json:"leader,omitempty"`
	Members    []*member `json:"members,omitempty"`
	EmptySince time.Time `json:"empty_since"`
}

// Snapshot encodes what must survive a restart.
func (g *Group) Snapshot() []byte {
	s := stored{Version: 1, State: g.state, Generation: g.generation, Kind: g.kind, Protocol: g.protocol, Leader: g.leader, EmptySince: g.emptySince}
	s.Members = g.inOrder()
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // only bytes, strings and numbers
	}
	return raw
}

// Restore rebuilds a group; its members have a whole session from now on to be heard of.
func Restore(cfg Config, raw []byte, now time.Time) (*Group, error) {
	var s stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("stored group is malformed: %w", err)
	}
	if s.Version != 1 {
		return nil, fmt.Errorf("stored group has version %d, this binary reads version 1", s.Version)
	}
	g := New(cfg, now)
	g.generation, g.kind, g.protocol, g.leader = s.Generation, s.Kind, s.Protocol, s.Leader
	g.emptySince = s.EmptySince
	if s.State != Stable || len(s.Members) == 0 {
		return g, nil
	}
	g.state, g.assigned = Stable, true
	for _, m := range s.Members {
		if m == nil || m.ID == "" {
			return nil, fmt.Errorf("stored group is malformed: a member without an id")
		}
		g.seq++
		m.seq, m.synced = g.seq, true
		m.touch(now)
		g.members[m.ID] = m
		if m.Instance != "" {
			g.static[m.Instance] = m.ID
		}
	}
	return g, nil
}
