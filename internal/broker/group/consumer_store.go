package group

import (
	"encoding/json"
	"fmt"
	"time"
)

// Changes is what of a group differs from what is stored. The shell makes it durable, all together, before it delivers the reply that came with it.
type Changes struct {
	Group   []byte            // the group's own part; nil: as it was
	Members map[string][]byte // by member id; nil: deleted
}

// Empty reports whether there is nothing to store.
func (c Changes) Empty() bool { return c.Group == nil && len(c.Members) == 0 }

// storedConsumer is the part of a group that is not a member's.
type storedConsumer struct {
	Version     int       `json:"v"`
	Epoch       int32     `json:"epoch"`
	TargetEpoch int32     `json:"target_epoch"`
	Assignor    string    `json:"assignor"`
	Interest    uint64    `json:"interest"`
	EmptySince  time.Time `json:"empty_since"`
}

const consumerVersion = 1

// Changes returns what has changed since the last call, and takes it as stored.
func (c *Consumer) Changes() Changes {
	var out Changes
	if c.header {
		c.header = false
		out.Group = encode(storedConsumer{
			Version: consumerVersion, Epoch: c.epoch, TargetEpoch: c.targetEpoch, Assignor: c.assignor, Interest: c.interest, EmptySince: c.emptySince,
		})
	}
	put := func(id string, raw []byte) {
		if out.Members == nil {
			out.Members = map[string][]byte{}
		}
		out.Members[id] = raw
	}
	for _, id := range c.removed {
		put(id, nil)
	}
	c.removed = c.removed[:0]
	for i, m := range c.changed {
		c.changed[i], m.dirty = nil, false
		if c.members[m.ID] == m { // otherwise it has been removed since
			put(m.ID, encode(m))
		}
	}
	c.changed = c.changed[:0]
	return out
}

// MemberIDs returns the ids under which members are stored.
func (c *Consumer) MemberIDs() []string {
	out := make([]string, 0, len(c.members))
	for _, m := range c.inOrder() {
		out = append(out, m.ID)
	}
	return out
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // only bytes, strings and numbers
	}
	return raw
}

// RestoreConsumer rebuilds a group from its stored part; its members follow by RestoreMember.
func RestoreConsumer(cfg ConsumerConfig, raw []byte, now time.Time) (*Consumer, error) {
	var s storedConsumer
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("stored group is malformed: %w", err)
	}
	if s.Version != consumerVersion {
		return nil, fmt.Errorf("stored group has version %d, this binary reads version %d", s.Version, consumerVersion)
	}
	c := NewConsumer(cfg, now)
	c.epoch, c.targetEpoch, c.assignor, c.interest, c.emptySince = s.Epoch, s.TargetEpoch, s.Assignor, s.Interest, s.EmptySince
	c.header = false
	return c, nil
}

// RestoreMember adds a stored member, which has a whole session from now on to be heard of.
func (c *Consumer) RestoreMember(id string, raw []byte, now time.Time) error {
	m := new(consumer)
	if err := json.Unmarshal(raw, m); err != nil {
		return fmt.Errorf("stored member %q is malformed: %w", id, err)
	}
	if m.ID != id || m.State > unreleased {
		return fmt.Errorf("stored member %q is malformed", id)
	}
	if m.Regex != "" {
		re, err := compile(m.Regex)
		if err != nil {
			return fmt.Errorf("stored member %q has an invalid regular expression: %w", id, err)
		}
		m.regex = re
	}
	for _, h := range []held{m.Assigned, m.Revoking} {
		for topic, list := range h {
			for p := range list {
				c.hold(id, topic, p)
			}
		}
	}
	m.session = now.Add(c.cfg.Session)
	if m.Classic != nil {
		m.session = now.Add(m.Classic.Session)
	}
	if m.State == unrevoked {
		m.revoke = now.Add(m.Rebalance)
	}
	c.members[id] = m
	if m.Instance != "" {
		c.static[m.Instance] = id
	}
	return nil
}
