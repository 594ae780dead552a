package broker

import (
	"strings"
	"testing"
	"time"
)

func TestNodeConfigs(t *testing.T) {
	t.Parallel()
	var o Options
	for name, value := range map[string]string{
		"group.initial.rebalance.delay.ms": "0", "group.max.size": "7", "group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "60000",
		"group.consumer.session.timeout.ms": "30000", "group.consumer.heartbeat.interval.ms": "1000", "offsets.retention.minutes": "90",
		"producer.id.expiration.ms": "5000", "transaction.max.timeout.ms": "70000", "transactional.id.expiration.ms": "80000", "log.retention.check.interval.ms": "100",
		"log.retention.hours": "2", "message.max.bytes": "5000", "log.segment.bytes": "2000000",
		"group.consumer.assignment.interval.ms": "700", "group.consumer.min.assignment.interval.ms": "600", "group.consumer.max.assignment.interval.ms": "800",
		"group.consumer.min.session.timeout.ms": "20000", "group.consumer.max.session.timeout.ms": "40000", "group.consumer.max.heartbeat.interval.ms": "2000",
	} {
		if err := o.SetNodeConfig(name, value); err != nil {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	o.setDefaults()
	if err := o.check(); err != nil {
		t.Error(err)
	}
	if o.InitialRebalanceDelay != 0 || o.MaxGroupSize != 7 || o.MinSessionTimeout != 10*time.Millisecond || o.MaxSessionTimeout != time.Minute ||
		o.ConsumerAssignment != 700*time.Millisecond || o.ConsumerMinAssignment != 600*time.Millisecond || o.ConsumerMaxAssignment != 800*time.Millisecond ||
		o.ConsumerMinSession != 20*time.Second || o.ConsumerMaxSession != 40*time.Second || o.ConsumerMinHeartbeat != time.Second || o.ConsumerMaxHeartbeat != 2*time.Second ||
		o.ConsumerSessionTimeout != 30*time.Second || o.ConsumerHeartbeat != time.Second || o.OffsetsRetention != 90*time.Minute ||
		o.ProducerExpiry != 5*time.Second || o.TransactionMaxTimeout != 70*time.Second || o.TransactionalIDExpiry != 80*time.Second || o.RetentionInterval != 100*time.Millisecond {
		t.Errorf("%+v", o)
	}
	if d := o.TopicDefaults; d["retention.ms"] != "7200000" || d["max.message.bytes"] != "5000" || d["segment.bytes"] != "2000000" || len(d) != 3 {
		t.Errorf("defaults of topics: %v", d)
	}
	for _, name := range NodeConfigNames() {
		if strings.TrimSpace(name) == "" || elsewhere[name] != "" {
			t.Errorf("%q is listed", name)
		}
	}
	for _, test := range []struct{ name, value, want string }{
		{"group.max.size", "0", "must be between 1 and"},
		{"group.max.size", "many", "not a whole number"},
		{"offsets.retention.minutes", "0", "must be between 1"},
		{"group.initial.rebalance.delay.ms", "-1", "must be between 0"},
		{"log.retention.hours", "-2", "must be between -1"},
		{"log.segment.bytes", "1048575", "must be between 1048576"},
		{"log.internal.segment.bytes", "100", "cannot be set"},
		{"num.partitions", "3", "--default-partitions sets it"},
		{"zookeeper.connect", "x", "cannot be set; there are compression.gzip.level, "},
		{"", "x", "cannot be set"},
	} {
		if err := new(Options).SetNodeConfig(test.name, test.value); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s=%s: %v, want %q", test.name, test.value, err, test.want)
		}
	}
	for _, test := range []struct{ a, b, want string }{
		{"group.min.session.timeout.ms=5000", "group.max.session.timeout.ms=4000", "group.min.session.timeout.ms (5000) is more than group.max.session.timeout.ms (4000)"},
		{"group.consumer.session.timeout.ms=5000", "group.consumer.heartbeat.interval.ms=5000", "must be less than"},
		{"group.consumer.session.timeout.ms=30000", "group.consumer.min.session.timeout.ms=45000", "(30000) is not between group.consumer.min.session.timeout.ms (45000) and group.consumer.max.session.timeout.ms (60000)"},
		{"group.consumer.assignment.interval.ms=900", "group.consumer.max.assignment.interval.ms=800", "(900) is not between group.consumer.min.assignment.interval.ms (0) and"},
		{"log.cleaner.min.compaction.lag.ms=10", "log.cleaner.max.compaction.lag.ms=5", "min.compaction.lag.ms"},
	} {
		var o Options
		for _, s := range []string{test.a, test.b} {
			name, value, _ := strings.Cut(s, "=")
			if err := o.SetNodeConfig(name, value); err != nil {
				t.Fatal(err)
			}
		}
		o.setDefaults()
		if err := o.check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s and %s: %v, want %q", test.a, test.b, err, test.want)
		}
	}
}
