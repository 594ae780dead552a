package broker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/record"
)

// ConfigType is how Kafka's DescribeConfigs names the type of a setting.
type ConfigType int8

const (
	ConfigBool   ConfigType = 1
	ConfigString ConfigType = 2
	ConfigInt    ConfigType = 3
	ConfigLong   ConfigType = 5
	ConfigDouble ConfigType = 6
	ConfigList   ConfigType = 7
)

// ConfigDef describes one topic setting.
type ConfigDef struct {
	Name    string
	Default string
	Type    ConfigType
	Doc     string
	check   func(string) error
}

// TopicConfigs is every topic setting that Leat knows, by name. Settings that only mean something with replicas or with Kafka's own
// file handling are taken and reported, since tools set them; the documentation says which have an effect.
var TopicConfigs = []ConfigDef{
	{"cleanup.policy", "delete", ConfigList, "delete, compact or both", cleanupPolicy},
	{"compression.gzip.level", "-1", ConfigInt, "has no effect: batches are compressed at the library's own level", gzipLevel},
	{"compression.lz4.level", "9", ConfigInt, "has no effect: batches are compressed at the library's own level", within(1, 17)},
	{"compression.type", "producer", ConfigString, "producer keeps batches as they came; others are compressed anew", oneOf("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")},
	{"compression.zstd.level", "3", ConfigInt, "has no effect: batches are compressed at the library's own level", within(-131072, 22)},
	{"delete.retention.ms", "86400000", ConfigLong, "how long a tombstone is kept after compaction", atLeast(0)},
	{"file.delete.delay.ms", "60000", ConfigLong, "has no effect", atLeast(0)},
	{"flush.messages", "9223372036854775807", ConfigLong, "has no effect: every record is synced through the journal", atLeast(1)},
	{"flush.ms", "9223372036854775807", ConfigLong, "has no effect: every record is synced through the journal", atLeast(0)},
	{"follower.replication.throttled.replicas", "", ConfigList, "has no effect: there is one replica", throttled},
	{"index.interval.bytes", "4096", ConfigInt, "bytes of log between two index entries", within(0, math.MaxInt32)},
	{"leader.replication.throttled.replicas", "", ConfigList, "has no effect: there is one replica", throttled},
	{"local.retention.bytes", "-2", ConfigLong, "has no effect: nothing is tiered", atLeast(-2)},
	{"local.retention.ms", "-2", ConfigLong, "has no effect: nothing is tiered", atLeast(-2)},
	{"max.compaction.lag.ms", "9223372036854775807", ConfigLong, "longest time a record may stay uncompacted", atLeast(1)},
	{"max.message.bytes", "1048588", ConfigInt, "largest record batch, as compressed by the producer", within(0, math.MaxInt32)},
	{"message.timestamp.after.max.ms", "3600000", ConfigLong, "how far ahead of now a record's timestamp may be", atLeast(0)},
	{"message.timestamp.before.max.ms", "9223372036854775807", ConfigLong, "how far behind now a record's timestamp may be", atLeast(0)},
	{"message.timestamp.type", "CreateTime", ConfigString, "CreateTime or LogAppendTime", oneOf("CreateTime", "LogAppendTime")},
	{"min.cleanable.dirty.ratio", "0.5", ConfigDouble, "share of uncompacted log from which on compaction runs", ratio},
	{"min.compaction.lag.ms", "0", ConfigLong, "time a record stays uncompacted", atLeast(0)},
	{"min.insync.replicas", "1", ConfigInt, "has no effect: there is one replica", within(1, math.MaxInt32)},
	{"preallocate", "false", ConfigBool, "has no effect", boolean},
	{"remote.copy.lag.bytes", "0", ConfigLong, "has no effect: nothing is tiered", atLeast(-1)},
	{"remote.copy.lag.ms", "0", ConfigLong, "has no effect: nothing is tiered", atLeast(-1)},
	{"remote.log.copy.disable", "false", ConfigBool, "has no effect: nothing is tiered", boolean},
	{"remote.log.delete.on.disable", "false", ConfigBool, "has no effect: nothing is tiered", boolean},
	{"remote.storage.enable", "false", ConfigBool, "nothing is tiered", never},
	{"retention.bytes", "-1", ConfigLong, "size a partition is kept below; negative: no limit", atLeast(math.MinInt64)},
	{"retention.ms", "604800000", ConfigLong, "age at which records are deleted; -1: never", atLeast(-1)},
	{"segment.bytes", "1073741824", ConfigInt, "size at which a new segment begins", within(1<<20, math.MaxInt32)},
	{"segment.index.bytes", "10485760", ConfigInt, "has no effect: indexes grow as needed", within(4, math.MaxInt32)},
	{"segment.jitter.ms", "0", ConfigLong, "how much earlier than segment.ms a segment may begin, different for each partition", atLeast(0)},
	{"segment.ms", "604800000", ConfigLong, "age at which a new segment begins", atLeast(1)},
	{"unclean.leader.election.enable", "false", ConfigBool, "has no effect: there is one replica", boolean},
}

// internalSegmentBytes goes before segment.bytes, is not shown, and may be smaller: for tests, as in Kafka, which has it under this name.
var internalSegmentBytes = ConfigDef{"internal.segment.bytes", "", ConfigInt, "", within(14, math.MaxInt32)}

// topicConfig returns the definition of a setting.
func topicConfig(name string) (ConfigDef, bool) {
	if name == internalSegmentBytes.Name {
		return internalSegmentBytes, true
	}
	i := slices.IndexFunc(TopicConfigs, func(d ConfigDef) bool { return d.Name == name })
	if i < 0 {
		return ConfigDef{}, false
	}
	return TopicConfigs[i], true
}

// CheckConfigs refuses unknown names and bad values. Names under "leat." are Leat's own and kept as they are.
func CheckConfigs(configs map[string]string) error {
	for name, value := range configs {
		if strings.HasPrefix(name, "leat.") {
			continue
		}
		def, ok := topicConfig(name)
		if !ok {
			return fmt.Errorf("%w: unknown topic setting %q", ErrInvalidConfig, name)
		}
		if err := def.check(value); err != nil {
			return fmt.Errorf("%w: %s = %q: %w", ErrInvalidConfig, name, value, err)
		}
	}
	lag := func(name string) int64 {
		v, ok := configs[name]
		if !ok {
			def, _ := topicConfig(name)
			v = def.Default
		}
		n, _ := whole(v)
		return n
	}
	if lo, hi := lag("min.compaction.lag.ms"), lag("max.compaction.lag.ms"); lo > hi {
		return fmt.Errorf("%w: min.compaction.lag.ms (%d) is more than max.compaction.lag.ms (%d)", ErrInvalidConfig, lo, hi)
	}
	return nil
}

// settings are a topic's configs, parsed once, for the paths that use them per batch.
type settings struct {
	retentionMs, retentionBytes int64
	segmentBytes, segmentMs     int64
	segmentJitterMs             int64
	indexInterval               int64
	maxMessage                  int
	logAppendTime               bool
	compacted, deletes          bool
	recompresses                bool         // batches of other codecs than
	codec                       record.Codec // this one
	deleteRetentionMs           int64
	minLagMs, maxLagMs          int64   // of compaction
	dirtyRatio                  float64 // from which on a log is compacted
	maxBehindMs, maxAheadMs     int64
}

// codecs are the values of compression.type that have batches compressed anew.
var codecs = map[string]record.Codec{
	"uncompressed": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.Zstd,
}

// parseSettings needs configs that passed CheckConfigs.
func parseSettings(configs, defaults map[string]string) settings {
	get := func(name string) string {
		if v, ok := configs[name]; ok {
			return v
		}
		if v, ok := defaults[name]; ok {
			return v
		}
		def, _ := topicConfig(name)
		return def.Default
	}
	num := func(name string) int64 {
		n, _ := whole(get(name))
		return n
	}
	s := settings{
		retentionMs: num("retention.ms"), retentionBytes: num("retention.bytes"),
		segmentBytes: num("segment.bytes"), segmentMs: num("segment.ms"), segmentJitterMs: num("segment.jitter.ms"),
		indexInterval: num("index.interval.bytes"),
		maxMessage:    int(num("max.message.bytes")),
		logAppendTime: get("message.timestamp.type") == "LogAppendTime",
		maxBehindMs:   num("message.timestamp.before.max.ms"), maxAheadMs: num("message.timestamp.after.max.ms"),
	}
	s.deleteRetentionMs, s.minLagMs, s.maxLagMs = num("delete.retention.ms"), num("min.compaction.lag.ms"), num("max.compaction.lag.ms")
	if n := num(internalSegmentBytes.Name); n > 0 {
		s.segmentBytes = n
	}
	s.dirtyRatio, _ = fraction(get("min.cleanable.dirty.ratio"))
	s.codec, s.recompresses = codecs[get("compression.type")]
	for policy := range strings.SplitSeq(get("cleanup.policy"), ",") {
		switch strings.TrimSpace(policy) {
		case "compact":
			s.compacted = true
		case "delete":
			s.deletes = true
		}
	}
	return s
}

// What is read and checked is taken as Kafka takes it: numbers and booleans may have spaces around them.

func whole(v string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a whole number")
	}
	return n, nil
}

func fraction(v string) (float64, error) { return strconv.ParseFloat(strings.TrimSpace(v), 64) }

func within(lo, hi int64) func(string) error {
	return func(v string) error {
		n, err := whole(v)
		if err != nil {
			return err
		}
		if n < lo || n > hi {
			return fmt.Errorf("must be between %d and %d", lo, hi)
		}
		return nil
	}
}

func atLeast(lo int64) func(string) error {
	return func(v string) error {
		n, err := whole(v)
		if err != nil {
			return err
		}
		if n < lo {
			return fmt.Errorf("must be at least %d", lo)
		}
		return nil
	}
}

func oneOf(values ...string) func(string) error {
	return func(v string) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("must be %s", strings.Join(values, " or "))
		}
		return nil
	}
}

func boolean(v string) error {
	if v = strings.TrimSpace(v); !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
		return fmt.Errorf("must be true or false")
	}
	return nil
}

// never takes a boolean that is false.
func never(v string) error {
	if err := boolean(v); err != nil || strings.EqualFold(strings.TrimSpace(v), "false") {
		return err
	}
	return fmt.Errorf("can only be false")
}

func gzipLevel(v string) error {
	if strings.TrimSpace(v) == "-1" {
		return nil
	}
	return within(1, 9)(v)
}

// throttled takes "*", or partition:broker pairs.
func throttled(v string) error {
	if v == "" || v == "*" {
		return nil
	}
	for pair := range strings.SplitSeq(v, ",") {
		partition, node, ok := strings.Cut(strings.TrimSpace(pair), ":")
		if !ok || within(0, math.MaxInt32)(partition) != nil || within(0, math.MaxInt32)(node) != nil {
			return fmt.Errorf("must be *, or a list of partition:broker")
		}
	}
	return nil
}

func ratio(v string) error {
	f, err := fraction(v)
	if err != nil || !(f >= 0 && f <= 1) {
		return fmt.Errorf("must be a number between 0 and 1")
	}
	return nil
}

func cleanupPolicy(v string) error {
	if v == "" { // everything is kept for ever
		return nil
	}
	for policy := range strings.SplitSeq(v, ",") {
		switch strings.TrimSpace(policy) {
		case "compact", "delete":
		default:
			return fmt.Errorf("must be delete, compact, or both with a comma between")
		}
	}
	return nil
}
