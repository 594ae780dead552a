package broker

import (
	"math"
	"testing"
	"time"
)

// TestWhatSettingsMeanForALog looks at the ends of what settings may be.
func TestWhatSettingsMeanForALog(t *testing.T) {
	t.Parallel()
	of := func(configs map[string]string) settings { return parseSettings(configs, nil) }
	for _, c := range []struct {
		name, value string
		retention   time.Duration // 0 or less: no bound
		bytes       int64
	}{
		{"retention.ms", "-1", -1, -1},
		{"retention.ms", "0", 1, -1},
		{"retention.ms", "9223372036854775807", math.MaxInt64, -1},
		{"retention.bytes", "-1", 7 * 24 * time.Hour, -1},
		{"retention.bytes", "0", 7 * 24 * time.Hour, 1},
		{"cleanup.policy", "compact", 0, 0},
	} {
		got := of(map[string]string{c.name: c.value}).logConfig(0)
		if max(got.Retention, 0) != max(c.retention, 0) || max(got.RetentionBytes, 0) != max(c.bytes, 0) {
			t.Errorf("%s=%s: kept for %s and up to %d bytes", c.name, c.value, got.Retention, got.RetentionBytes)
		}
	}
	never := of(map[string]string{"cleanup.policy": "compact", "max.compaction.lag.ms": "9223372036854775807", "segment.ms": "9223372036854775807"}).logConfig(3)
	if never.MaxCompactionLag != 0 || never.SegmentAge != math.MaxInt64 {
		t.Errorf("never is %s and %s", never.MaxCompactionLag, never.SegmentAge)
	}
	for index := range int32(50) {
		age := of(map[string]string{"segment.ms": "1000", "segment.jitter.ms": "9223372036854775807"}).logConfig(index).SegmentAge
		if age < time.Millisecond || age > time.Second {
			t.Errorf("partition %d rolls after %s", index, age)
		}
	}
}
