package interop

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// configOf is one setting of a topic as a client is told it.
func configOf(t *testing.T, adm *kadm.Client, topic, name string) (value string, source kmsg.ConfigSource) {
	t.Helper()
	all, err := adm.DescribeTopicConfigs(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	one, err := all.On(topic, nil)
	if err != nil || one.Err != nil {
		t.Fatal(err, one.Err)
	}
	for _, c := range one.Configs {
		if c.Key == name {
			return c.MaybeValue(), c.Source
		}
	}
	t.Fatalf("%s has no setting %s", topic, name)
	return "", 0
}

func TestSettingsOfTopics(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{Broker: func(o *broker.Options) { o.TopicDefaults = map[string]string{"retention.bytes": "1000000"} }})
	adm := kadm.NewClient(client(t, n))
	if _, err := adm.CreateTopic(within(t), 1, 3, map[string]*string{"retention.ms": kadm.StringPtr("5000")}, "t"); err != nil {
		t.Fatal(err)
	}
	type change = kadm.AlterConfig
	alter := func(cs ...change) error {
		resps, err := adm.AlterTopicConfigs(within(t), cs, "t")
		if err != nil {
			return err
		}
		return resps[0].Err
	}
	want := func(name, value string, source kmsg.ConfigSource) {
		t.Helper()
		if v, s := configOf(t, adm, "t", name); v != value || s != source {
			t.Errorf("%s is %q from %v, want %q from %v", name, v, s, value, source)
		}
	}
	const explicit, node, def = kmsg.ConfigSourceDynamicTopicConfig, kmsg.ConfigSourceStaticBrokerConfig, kmsg.ConfigSourceDefaultConfig
	want("retention.ms", "5000", explicit)
	want("retention.bytes", "1000000", node)
	want("segment.ms", "604800000", def)
	if err := alter(change{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")}); err != nil {
		t.Error(err)
	}
	want("cleanup.policy", "delete,compact", explicit)
	if err := alter(change{Op: kadm.SubtractConfig, Name: "cleanup.policy", Value: kadm.StringPtr("delete")}, change{Op: kadm.DeleteConfig, Name: "retention.ms"}); err != nil {
		t.Error(err)
	}
	want("cleanup.policy", "compact", explicit)
	want("retention.ms", "604800000", def)
	for _, c := range []struct {
		change
		code *kerr.Error
	}{
		{change{Op: kadm.AppendConfig, Name: "retention.ms", Value: kadm.StringPtr("1")}, kerr.InvalidConfig},
		{change{Name: "nonsense", Value: kadm.StringPtr("1")}, kerr.InvalidConfig},
		{change{Name: "retention.ms", Value: kadm.StringPtr("-2")}, kerr.InvalidConfig},
		{change{Name: "retention.ms"}, kerr.InvalidRequest},
		{change{Name: "min.compaction.lag.ms", Value: kadm.StringPtr("9223372036854775807")}, nil},
		{change{Name: "max.compaction.lag.ms", Value: kadm.StringPtr("5")}, kerr.InvalidConfig},
	} {
		if err := alter(c.change); c.code == nil && err != nil || c.code != nil && !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %v", c.Name, err, c.code)
		}
	}
	// The old way replaces them all.
	state, err := adm.AlterTopicConfigsState(within(t), []change{{Name: "segment.bytes", Value: kadm.StringPtr("2000000")}}, "t")
	if err != nil || state[0].Err != nil {
		t.Fatal(err, state[0].Err)
	}
	want("segment.bytes", "2000000", explicit)
	want("cleanup.policy", "delete", def)
	n.Restart()
	adm = kadm.NewClient(client(t, n))
	want("segment.bytes", "2000000", explicit)
}

func TestSettingsOfTheNodeAndOfGroups(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{Broker: func(o *broker.Options) { o.DefaultPartitions = 7 }})
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	all, err := adm.DescribeBrokerConfigs(within(t), 1)
	if err != nil || len(all) != 1 || all[0].Err != nil {
		t.Fatal(err, all)
	}
	found := map[string]string{}
	for _, c := range all[0].Configs {
		if _, dup := found[c.Key]; dup {
			t.Errorf("%s is told twice", c.Key)
		}
		found[c.Key] = c.MaybeValue()
	}
	for name, value := range map[string]string{
		"num.partitions": "7", "default.replication.factor": "1", "log.retention.ms": "604800000", "log.retention.hours": "168", "node.id": "1",
		"message.max.bytes": "1048588", "log.cleanup.policy": "delete", "offsets.retention.minutes": "10080", "inter.broker.protocol.version": "4.4",
	} {
		if found[name] != value {
			t.Errorf("%s is %q, want %q", name, found[name], value)
		}
	}
	if resps, err := adm.AlterBrokerConfigs(within(t), []kadm.AlterConfig{{Name: "num.partitions", Value: kadm.StringPtr("2")}}, 1); err == nil && resps[0].Err == nil {
		t.Error("a setting of the node was changed while it runs")
	}

	group := func(name string, value *string) error {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		rr := kmsg.NewIncrementalAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeGroupConfig, "g"
		rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		rc.Name, rc.Value = name, value
		rr.Configs = append(rr.Configs, rc)
		req.Resources = append(req.Resources, rr)
		resp, err := req.RequestWith(within(t), cl)
		if err != nil {
			t.Fatal(err)
		}
		return kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	}
	for name, bounds := range map[string][2]int{
		"consumer.session.timeout.ms": {45_000, 60_000}, "consumer.heartbeat.interval.ms": {5000, 15_000}, "consumer.assignment.interval.ms": {0, 15_000},
	} {
		for _, value := range []int{bounds[0] - 1, bounds[1] + 1} {
			if err := group(name, kadm.StringPtr(strconv.Itoa(value))); err != kerr.InvalidConfig {
				t.Errorf("%s=%d: %v", name, value, err)
			}
		}
		for _, value := range bounds {
			if err := group(name, kadm.StringPtr(strconv.Itoa(value))); err != nil {
				t.Errorf("%s=%d: %v", name, value, err)
			}
		}
	}
	if err := group("consumer.heartbeat.interval.ms", kadm.StringPtr("5678")); err != nil {
		t.Error(err)
	}
	if err := group("nonsense", kadm.StringPtr("1")); err != kerr.InvalidConfig {
		t.Errorf("nonsense: %v", err)
	}
	produce(t, cl, numbered("t", "", 1)...)
	for range 2 {
		r := beat(t, cl, joining("m", "", "t"))
		if r.HeartbeatIntervalMillis != 5678 {
			t.Errorf("a member is told %d ms", r.HeartbeatIntervalMillis)
		}
		listed, err := adm.ListConfigResources(within(t), kadm.ConfigResourceType(kmsg.ConfigResourceTypeGroupConfig))
		if err != nil || len(listed.Resources) != 1 {
			t.Errorf("groups with settings: %v %v", listed, err)
		}
		n.Restart()
		cl = client(t, n)
		adm = kadm.NewClient(cl)
	}
}

func TestDeletedRecordsAreGone(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	produce(t, cl, numbered("t", "", 10)...)
	deleteTo := func(topic string, at int64) (low int64, err error) {
		var os kadm.Offsets
		os.Add(kadm.Offset{Topic: topic, At: at})
		rs, err := adm.DeleteRecords(within(t), os)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := rs.Lookup(topic, 0)
		return r.LowWatermark, r.Err
	}
	if low, err := deleteTo("t", 4); err != nil || low != 4 {
		t.Fatalf("deleted up to %d: %v", low, err)
	}
	if low, err := deleteTo("t", 2); err != nil || low != 4 {
		t.Errorf("the start went back to %d: %v", low, err)
	}
	if _, err := deleteTo("t", 11); err != kerr.OffsetOutOfRange {
		t.Errorf("deleted records that there are not: %v", err)
	}
	read := func() string {
		t.Helper()
		return values(consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 6))
	}
	const want = "4 5 6 7 8 9"
	if got := read(); got != want {
		t.Errorf("read %s", got)
	}
	for _, checkpoint := range []bool{false, true, false} {
		if checkpoint {
			n.Checkpoint()
		}
		n.Restart()
		if got := read(); got != want {
			t.Errorf("after a restart (checkpoint: %v): read %s", checkpoint, got)
		}
	}
	cl = client(t, n)
	adm = kadm.NewClient(cl)
	if low, err := deleteTo("t", -1); err != nil || low != 10 {
		t.Errorf("deleted all, up to %d: %v", low, err)
	}
	// An idempotent producer goes on.
	produce(t, cl, numbered("t", "n", 1)...)
	if rs := consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 1); rs[0].Offset != 10 {
		t.Errorf("the next record is at %d", rs[0].Offset)
	}
	if _, err := adm.CreateTopic(within(t), 1, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := deleteTo("c", 0); !errors.Is(err, kerr.PolicyViolation) {
		t.Errorf("deleted records of a compacted topic: %v", err)
	}
	if _, err := adm.DeleteTopic(within(t), "t"); err != nil {
		t.Fatal(err)
	}
	n.Restart()
}

func TestOneNodeAnswersForACluster(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopics(within(t), 3, 1, nil, "a", "b"); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, numbered("a", "", 100)...)
	var set kadm.TopicsSet
	set.Add("a", 0, 1, 2)

	dirs, err := adm.DescribeAllLogDirs(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	size := func() (n int64) {
		dirs.Each(func(d kadm.DescribedLogDir) { n += d.Size() })
		return n
	}
	if size() == 0 {
		t.Errorf("the folder is empty: %+v", dirs)
	}
	was := size()
	n.Restart() // files that were not touched are seen, too
	cl = client(t, n)
	adm = kadm.NewClient(cl)
	if dirs, err = adm.DescribeAllLogDirs(within(t), nil); err != nil || size() != was {
		t.Errorf("after a restart the folder has %d bytes, and had %d: %v", size(), was, err)
	}

	elected, err := adm.ElectLeaders(within(t), kadm.ElectPreferredReplica, set)
	if err != nil || len(elected["a"]) != 3 || !errors.Is(elected["a"][0].Err, kerr.ElectionNotNeeded) {
		t.Errorf("elected: %+v %v", elected, err)
	}
	moving, err := adm.ListPartitionReassignments(within(t), nil)
	if err != nil || len(moving) != 0 {
		t.Errorf("moving: %+v %v", moving, err)
	}
	var move kadm.AlterPartitionAssignmentsReq
	move.Assign("a", 0, []int32{1})
	move.Assign("a", 1, []int32{2})
	move.CancelAssign("a", 2)
	moved, err := adm.AlterPartitionAssignments(within(t), move)
	if err != nil || moved["a"][0].Err != nil || !errors.Is(moved["a"][1].Err, kerr.InvalidReplicaAssignment) || !errors.Is(moved["a"][2].Err, kerr.NoReassignmentInProgress) {
		t.Errorf("moved: %+v %v", moved, err)
	}
	if _, err := adm.UpdateFeatures(within(t), false, kadm.FeatureUpdate{Feature: "group.version", MaxVersionLevel: 1, UpgradeType: 1}); err != nil {
		t.Errorf("the level that is there: %v", err)
	}
	if fs, err := adm.UpdateFeatures(within(t), false, kadm.FeatureUpdate{Feature: "group.version", MaxVersionLevel: 0, UpgradeType: 2}); err == nil && fs["group.version"].Err == nil {
		t.Errorf("a feature was changed: %+v", fs)
	}

	quorum := kmsg.NewPtrDescribeQuorumRequest()
	qt := kmsg.NewDescribeQuorumRequestTopic()
	qt.Topic = "__cluster_metadata"
	qt.Partitions = append(qt.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	quorum.Topics = append(quorum.Topics, qt)
	q, err := quorum.RequestWith(within(t), cl)
	if err != nil || q.Topics[0].Partitions[0].LeaderID != 1 || len(q.Topics[0].Partitions[0].CurrentVoters) != 1 || len(q.Nodes) != 1 {
		t.Errorf("quorum: %+v %v", q, err)
	}

	// Partitions in pages.
	var pages []string
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 2
	for {
		resp, err := req.RequestWith(within(t), cl)
		if err != nil {
			t.Fatal(err)
		}
		var page strings.Builder
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				fmt.Fprintf(&page, "%s%d", *rt.Topic, p.Partition)
			}
		}
		pages = append(pages, page.String())
		if resp.NextCursor == nil {
			break
		}
		req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
	}
	if want := []string{"a0a1", "a2b0", "b1b2"}; !slices.Equal(pages, want) {
		t.Errorf("pages %v, want %v", pages, want)
	}

	push := kmsg.NewPtrGetTelemetrySubscriptionsRequest()
	sub, err := push.RequestWith(within(t), cl)
	if err != nil || sub.ClientInstanceID == ([16]byte{}) || len(sub.RequestedMetrics) != 0 {
		t.Errorf("telemetry: %+v %v", sub, err)
	}
}

func TestTopicsHaveTheirOwnCodecAndClock(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	cl := client(t, n, kgo.ProducerBatchCompression(kgo.GzipCompression()))
	adm := kadm.NewClient(cl)
	for codec, attribute := range map[string]uint8{"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4, "producer": 1} {
		topic := "c-" + codec
		if _, err := adm.CreateTopic(within(t), 1, 1, map[string]*string{"compression.type": &codec, "message.timestamp.type": kadm.StringPtr("LogAppendTime")}, topic); err != nil {
			t.Fatal(err)
		}
		sent := numbered(topic, strings.Repeat("x", 100), 50)
		produce(t, cl, sent...)
		for i, r := range consume(t, client(t, n, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 50) {
			if r.Attrs.CompressionType() != attribute || r.Attrs.TimestampType() != 1 || string(r.Value) != string(sent[i].Value) {
				t.Fatalf("%s: record %d has codec %d, timestamp type %d", codec, i, r.Attrs.CompressionType(), r.Attrs.TimestampType())
			}
		}
	}
	// A record without a key has no place on a compacted topic, and is named.
	if _, err := adm.CreateTopic(within(t), 1, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, "compacted"); err != nil {
		t.Fatal(err)
	}
	err := cl.ProduceSync(within(t), &kgo.Record{Topic: "compacted", Value: []byte("v")}).FirstErr()
	if !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a record without a key: %v", err)
	}
	produce(t, cl, &kgo.Record{Topic: "compacted", Key: []byte("k"), Value: []byte("v")})
}
