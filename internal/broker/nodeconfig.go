package broker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nodeDefaults is what Kafka calls the node's default of a topic setting, where that is not the same name with "log." before it.
var nodeDefaults = map[string]string{
	"compression.gzip.level": "compression.gzip.level", "compression.lz4.level": "compression.lz4.level", "compression.type": "compression.type",
	"compression.zstd.level": "compression.zstd.level", "delete.retention.ms": "log.cleaner.delete.retention.ms",
	"file.delete.delay.ms": "log.segment.delete.delay.ms", "flush.messages": "log.flush.interval.messages", "flush.ms": "log.flush.interval.ms",
	"max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms", "max.message.bytes": "message.max.bytes",
	"min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio", "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
	"min.insync.replicas": "min.insync.replicas", "segment.index.bytes": "log.index.size.max.bytes", "segment.ms": "log.roll.ms",
	"segment.jitter.ms": "log.roll.jitter.ms", "unclean.leader.election.enable": "unclean.leader.election.enable",
	// No node-wide default:
	"follower.replication.throttled.replicas": "", "leader.replication.throttled.replicas": "", "remote.storage.enable": "",
	"remote.copy.lag.bytes": "", "remote.copy.lag.ms": "", "remote.log.copy.disable": "", "remote.log.delete.on.disable": "",
}

// NodeDefaultOf is the name of the node's setting that a topic's falls back to; false if there is none.
func NodeDefaultOf(topicSetting string) (name string, ok bool) {
	if name, ok = nodeDefaults[topicSetting]; ok {
		return name, name != ""
	}
	return "log." + topicSetting, true
}

// nodeConfig is a setting of the node, under Kafka's name, that it can be started with.
type nodeConfig struct {
	name string
	unit time.Duration // of a length of time; 0: a number
	min  int64
	max  int64
	set  func(o *Options, n int64)
}

// length is a setting that is a length of time.
func length(name string, unit time.Duration, least int64, field func(o *Options) *time.Duration) nodeConfig {
	return nodeConfig{name, unit, least, math.MaxInt32, func(o *Options, n int64) { *field(o) = time.Duration(n) * unit }}
}

var nodeConfigs = []nodeConfig{
	length("group.consumer.assignment.interval.ms", time.Millisecond, 0, func(o *Options) *time.Duration { return &o.ConsumerAssignment }),
	length("group.consumer.heartbeat.interval.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerHeartbeat }),
	length("group.consumer.max.assignment.interval.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerMaxAssignment }),
	length("group.consumer.max.heartbeat.interval.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerMaxHeartbeat }),
	length("group.consumer.max.session.timeout.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerMaxSession }),
	length("group.consumer.min.assignment.interval.ms", time.Millisecond, 0, func(o *Options) *time.Duration { return &o.ConsumerMinAssignment }),
	length("group.consumer.min.heartbeat.interval.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerMinHeartbeat }),
	length("group.consumer.min.session.timeout.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerMinSession }),
	length("group.consumer.session.timeout.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ConsumerSessionTimeout }),
	{"group.initial.rebalance.delay.ms", time.Millisecond, 0, math.MaxInt32, func(o *Options, n int64) {
		if o.InitialRebalanceDelay = time.Duration(n) * time.Millisecond; n == 0 {
			o.InitialRebalanceDelay = -1 // zero is the default
		}
	}},
	length("group.max.session.timeout.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.MaxSessionTimeout }),
	{"group.max.size", 0, 1, 100_000, func(o *Options, n int64) { o.MaxGroupSize = int(n) }},
	length("group.min.session.timeout.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.MinSessionTimeout }),
	length("log.retention.check.interval.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.RetentionInterval }),
	length("offsets.retention.minutes", time.Minute, 1, func(o *Options) *time.Duration { return &o.OffsetsRetention }),
	length("producer.id.expiration.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.ProducerExpiry }),
	length("transaction.max.timeout.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.TransactionMaxTimeout }),
	length("transactional.id.expiration.ms", time.Millisecond, 1, func(o *Options) *time.Duration { return &o.TransactionalIDExpiry }),
}

// elsewhere are settings of the node that are given in another way, or not at all.
var elsewhere = map[string]string{
	"auto.create.topics.enable": "--auto-create-topics sets it",
	"num.partitions":            "--default-partitions sets it",
	"log.cleaner.backoff.ms":    "--compaction-interval sets it",
	"log.dirs":                  "--data sets it",
	"log.dir":                   "--data sets it",
	"listeners":                 "--kafka sets it",
	"advertised.listeners":      "--kafka sets it",
	"group.consumer.max.size":   "group.max.size holds for the groups of both protocols",
	"log.cleanup.policy":        "cleanup.policy is a topic's own",

	"broker.rack": "there is one node, and so no rack to choose",
}

// NodeConfigNames are the names that SetNodeConfig takes.
func NodeConfigNames() []string {
	names := []string{"log.retention.hours", "log.retention.minutes"}
	for _, c := range nodeConfigs {
		names = append(names, c.name)
	}
	for _, def := range TopicConfigs {
		if name, ok := NodeDefaultOf(def.Name); ok && elsewhere[name] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// SetNodeConfig sets a setting of the node under Kafka's name: one of its own, or the default of a topic's.
func (o *Options) SetNodeConfig(name, value string) error {
	if where := elsewhere[name]; where != "" {
		return fmt.Errorf("%w: %s: %s", ErrInvalidConfig, name, where)
	}
	wrong := func(err error) error { return fmt.Errorf("%w: %s = %q: %w", ErrInvalidConfig, name, value, err) }
	for _, c := range nodeConfigs {
		if c.name != name {
			continue
		}
		most := c.max
		if c.unit > 0 {
			most = min(most, math.MaxInt64/int64(c.unit))
		}
		if err := within(c.min, most)(value); err != nil {
			return wrong(err)
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		c.set(o, n)
		return nil
	}
	for unit, ms := range map[string]int64{"log.retention.hours": 3_600_000, "log.retention.minutes": 60_000} {
		if name != unit {
			continue
		}
		if err := within(-1, math.MaxInt64/ms)(value); err != nil {
			return wrong(err)
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if n < 0 {
			return o.SetNodeConfig("log.retention.ms", "-1")
		}
		return o.SetNodeConfig("log.retention.ms", strconv.FormatInt(n*ms, 10))
	}
	for _, def := range TopicConfigs {
		if node, ok := NodeDefaultOf(def.Name); !ok || node != name {
			continue
		}
		if err := def.check(value); err != nil {
			return wrong(err)
		}
		if o.TopicDefaults == nil {
			o.TopicDefaults = map[string]string{}
		}
		o.TopicDefaults[def.Name] = value
		return nil
	}
	return fmt.Errorf("%w: %q cannot be set; there are %s", ErrInvalidConfig, clip(name), strings.Join(NodeConfigNames(), ", "))
}

// check refuses settings that do not go together; the defaults are filled in.
func (o *Options) check() error {
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	switch {
	case o.MinSessionTimeout > o.MaxSessionTimeout:
		return fmt.Errorf("%w: group.min.session.timeout.ms (%d) is more than group.max.session.timeout.ms (%d)", ErrInvalidConfig, ms(o.MinSessionTimeout), ms(o.MaxSessionTimeout))
	case o.ConsumerHeartbeat >= o.ConsumerSessionTimeout:
		return fmt.Errorf("%w: group.consumer.heartbeat.interval.ms (%d) must be less than group.consumer.session.timeout.ms (%d)", ErrInvalidConfig, ms(o.ConsumerHeartbeat), ms(o.ConsumerSessionTimeout))
	}
	for _, c := range []struct {
		lo, value, hi time.Duration
		name          string
	}{
		{o.ConsumerMinSession, o.ConsumerSessionTimeout, o.ConsumerMaxSession, "session.timeout.ms"},
		{o.ConsumerMinHeartbeat, o.ConsumerHeartbeat, o.ConsumerMaxHeartbeat, "heartbeat.interval.ms"},
		{o.ConsumerMinAssignment, o.ConsumerAssignment, o.ConsumerMaxAssignment, "assignment.interval.ms"},
	} {
		if c.value < c.lo || c.value > c.hi {
			return fmt.Errorf("%w: group.consumer.%s (%d) is not between group.consumer.min.%[2]s (%[4]d) and group.consumer.max.%[2]s (%[5]d)", ErrInvalidConfig, c.name, ms(c.value), ms(c.lo), ms(c.hi))
		}
	}
	return CheckConfigs(o.TopicDefaults)
}
