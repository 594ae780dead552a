package broker

import "testing"

// TestTheLimitsOfTopicSettings has the values at the limits of each setting taken and refused as Apache Kafka 4.4 does, which was asked.
func TestTheLimitsOfTopicSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		taken, refused []string
	}{
		{"segment.bytes", []string{"1048576", "2147483647"}, []string{"1048575", "2147483648"}},
		{"internal.segment.bytes", []string{"100"}, nil},
		{"segment.ms", []string{"1", "9223372036854775807"}, []string{"0", "9223372036854775808"}},
		{"segment.jitter.ms", []string{"0"}, []string{"-1"}},
		{"segment.index.bytes", []string{"4"}, []string{"3"}},
		{"flush.messages", []string{"1"}, []string{"0"}},
		{"flush.ms", []string{"0"}, []string{"-1"}},
		{"retention.bytes", []string{"-1", "-2", "-100", "0"}, []string{"1.5"}},
		{"retention.ms", []string{"-1", "0", " 5000 ", "+5000"}, []string{"-2", "5e3", "0x10", ""}},
		{"max.message.bytes", []string{"0"}, []string{"-1"}},
		{"index.interval.bytes", []string{"0"}, []string{"-1"}},
		{"delete.retention.ms", []string{"0"}, []string{"-1"}},
		{"min.compaction.lag.ms", []string{"0"}, []string{"-1"}},
		{"max.compaction.lag.ms", []string{"1"}, []string{"0"}},
		{"file.delete.delay.ms", []string{"0"}, []string{"-1"}},
		{"min.cleanable.dirty.ratio", []string{"0", "1", " 0.5"}, []string{"1.1", "-0.1"}},
		{"cleanup.policy", []string{"", "delete,delete", "compact, delete"}, []string{"none", "Delete", "delete,"}},
		{"unclean.leader.election.enable", []string{"TRUE", "false"}, []string{"yes", "1"}},
		{"preallocate", []string{" true "}, []string{""}},
		{"min.insync.replicas", []string{"1", "5"}, []string{"0"}},
		{"compression.type", []string{"uncompressed", "producer"}, []string{"GZIP", "lzma", "none"}},
		{"compression.gzip.level", []string{"-1", "1", "9"}, []string{"0", "10"}},
		{"compression.lz4.level", []string{"1", "17"}, []string{"0", "18"}},
		{"compression.zstd.level", []string{"-131072", "0", "22"}, []string{"-131073", "23"}},
		{"message.timestamp.type", []string{"LogAppendTime"}, []string{"createTime"}},
		{"message.timestamp.before.max.ms", []string{"0"}, []string{"-1"}},
		{"message.timestamp.after.max.ms", []string{"0"}, []string{"-1"}},
		{"leader.replication.throttled.replicas", []string{"*", "0:1,1:2", "0:1, 1:2", ""}, []string{"x"}},
		{"remote.storage.enable", []string{"false", "FALSE"}, []string{"true"}},
		{"remote.log.copy.disable", []string{"true"}, []string{"no"}},
		{"remote.copy.lag.ms", []string{"-1", "0"}, []string{"-2"}},
		{"local.retention.ms", []string{"-2", "5"}, []string{"-3"}},
		{"local.retention.bytes", []string{"-2"}, []string{"-3"}},
		{"message.format.version", nil, []string{"3.0"}},
		{"nonsense", nil, []string{"1"}},
	} {
		for _, value := range c.taken {
			if err := CheckConfigs(map[string]string{c.name: value}); err != nil {
				t.Errorf("%s=%q: %v", c.name, value, err)
			}
		}
		for _, value := range c.refused {
			if err := CheckConfigs(map[string]string{c.name: value}); err == nil {
				t.Errorf("%s=%q is taken", c.name, value)
			}
		}
	}
	if s := parseSettings(map[string]string{"retention.ms": " 5000 ", "segment.bytes": "2000000", "internal.segment.bytes": "100"}, nil); s.retentionMs != 5000 || s.segmentBytes != 100 {
		t.Errorf("%+v", s)
	}
}
