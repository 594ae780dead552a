package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
)

// Settings of a single group, stored under "group-config/" id. A group may have some before it has ever been used.
const groupConfigPrefix = "group-config/"

const (
	configConsumerSession   = "consumer.session.timeout.ms"
	configConsumerHeartbeat = "consumer.heartbeat.interval.ms"
	configAssignment        = "consumer.assignment.interval.ms"
)

// maxGroupConfigs bounds the groups that have settings of their own.
const maxGroupConfigs = 100_000

// GroupConfigs is every setting of a group that Leat knows, by name. The defaults are the node's.
func (gs *Groups) GroupConfigs() []ConfigDef {
	o := &gs.b.o
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	between := func(lo, hi time.Duration) func(string) error { return within(lo.Milliseconds(), hi.Milliseconds()) }
	return []ConfigDef{
		{configAssignment, ms(o.ConsumerAssignment), ConfigInt, "least time between two assignments; 0: each change is followed by one at once", between(o.ConsumerMinAssignment, o.ConsumerMaxAssignment)},
		{configConsumerHeartbeat, ms(o.ConsumerHeartbeat), ConfigInt, "how often members are heard of", between(o.ConsumerMinHeartbeat, o.ConsumerMaxHeartbeat)},
		{configConsumerSession, ms(o.ConsumerSessionTimeout), ConfigInt, "a member that is silent for so long is removed", between(o.ConsumerMinSession, o.ConsumerMaxSession)},
	}
}

func (gs *Groups) loadConfigs() error {
	return gs.b.kv.ScanMeta(groupConfigPrefix, func(key string, value []byte) error {
		var configs map[string]string
		if err := json.Unmarshal(value, &configs); err != nil {
			return fmt.Errorf("metadata key %q is malformed: %w", key, err)
		}
		gs.configs[strings.TrimPrefix(key, groupConfigPrefix)] = configs
		return nil
	})
}

// Configs returns the settings that were given to a group explicitly.
func (gs *Groups) Configs(id string) map[string]string {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return maps.Clone(gs.configs[id])
}

// Configured returns the groups that have settings of their own.
func (gs *Groups) Configured() []string {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return slices.Sorted(maps.Keys(gs.configs))
}

// CheckConfigs refuses settings that a group cannot have.
func (gs *Groups) CheckConfigs(id string, configs map[string]string) error {
	if err := CheckGroupID(id); err != nil {
		return err
	}
	defs := gs.GroupConfigs()
	for name, value := range configs {
		i := slices.IndexFunc(defs, func(d ConfigDef) bool { return d.Name == name })
		if i < 0 {
			return fmt.Errorf("%w: unknown group setting %q", ErrInvalidConfig, clip(name))
		}
		if err := defs[i].check(value); err != nil {
			return fmt.Errorf("%w: %s = %q: %w", ErrInvalidConfig, name, clip(value), err)
		}
	}
	if cfg := gs.consumerConfigOf(configs); cfg.Heartbeat >= cfg.Session {
		return fmt.Errorf("%w: %s (%d) must be less than %s (%d)", ErrInvalidConfig,
			configConsumerHeartbeat, cfg.Heartbeat.Milliseconds(), configConsumerSession, cfg.Session.Milliseconds())
	}
	return nil
}

// ChangeConfigs replaces the settings of a group by what change makes of them; it returns when that is durable.
func (gs *Groups) ChangeConfigs(ctx context.Context, id string, change func(old map[string]string) (map[string]string, error)) error {
	gs.b.ddl.Lock()
	defer gs.b.ddl.Unlock()
	configs, err := change(gs.Configs(id))
	if err != nil {
		return err
	}
	if err := gs.CheckConfigs(id, configs); err != nil {
		return err
	}
	gs.mu.RLock()
	full := len(gs.configs) >= maxGroupConfigs && gs.configs[id] == nil
	gs.mu.RUnlock()
	if full {
		return ErrTooManyGroups
	}
	var raw []byte
	if len(configs) > 0 {
		raw, _ = json.Marshal(configs)
	}
	if err := gs.b.commitMeta(context.WithoutCancel(ctx), map[string][]byte{groupConfigPrefix + id: raw}); err != nil {
		return err
	}
	gs.mu.Lock()
	if len(configs) > 0 {
		gs.configs[id] = maps.Clone(configs)
	} else {
		delete(gs.configs, id)
	}
	gs.mu.Unlock()
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return nil // it will have them when it is made
	}
	defer s.mu.Unlock()
	if s.c != nil {
		s.c.SetConfig(gs.consumerConfigOf(configs))
	}
	return nil
}

// consumerConfig is what holds for a group in the new protocol.
func (gs *Groups) consumerConfig(id string) group.ConsumerConfig {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return gs.consumerConfigOf(gs.configs[id])
}

func (gs *Groups) consumerConfigOf(configs map[string]string) group.ConsumerConfig {
	o := &gs.b.o
	cfg := group.ConsumerConfig{Session: o.ConsumerSessionTimeout, Heartbeat: o.ConsumerHeartbeat, Assignment: o.ConsumerAssignment, MaxMembers: o.MaxGroupSize, Classic: gs.cfg}
	set := func(d *time.Duration, name string) {
		if n, err := strconv.ParseInt(strings.TrimSpace(configs[name]), 10, 64); err == nil {
			*d = time.Duration(n) * time.Millisecond
		}
	}
	set(&cfg.Session, configConsumerSession)
	set(&cfg.Heartbeat, configConsumerHeartbeat)
	set(&cfg.Assignment, configAssignment)
	return cfg
}
