package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// quickGroups makes members of the new protocol be heard of often, so that tests need not wait for Kafka's five seconds.
func quickGroups(o *broker.Options) {
	o.ConsumerSessionTimeout, o.ConsumerHeartbeat = 2*time.Second, 50*time.Millisecond
}

func quickNode(t *testing.T) *kafkatest.Node {
	return kafkatest.Start(t, kafkatest.Options{Broker: quickGroups})
}

// spread says what is missing until the members own all partitions, each of them at least one, and have read all records.
func spread(members []*member, partitions, records int) string {
	owned, seen := 0, map[string]bool{}
	for i, m := range members {
		o := m.owns()
		if o == 0 {
			return fmt.Sprintf("member %d has no partition", i)
		}
		owned += o
		m.mu.Lock()
		for v := range m.seen {
			seen[v] = true
		}
		m.mu.Unlock()
	}
	switch {
	case owned != partitions:
		return fmt.Sprintf("%d partitions are owned, want %d", owned, partitions)
	case len(seen) < records:
		return fmt.Sprintf("%d of %d records were read", len(seen), records)
	}
	return ""
}

func TestTheNewGroupProtocol(t *testing.T) {
	t.Parallel()
	n := quickNode(t)
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: 6}); err != nil {
		t.Fatal(err)
	}
	producer := client(t, n, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	produce(t, producer, numbered("t", "a", 300)...)
	var members []*member
	for range 3 {
		members = append(members, newMember(t, n, "g", "t", kgo.ServerSideBalancer(), kgo.Balancers(kgo.CooperativeStickyBalancer())))
	}
	eventually(t, func() string { return spread(members, 6, 300) })
	info, ok, err := n.Broker.Groups().DescribeConsumer("g")
	if err != nil || !ok || info.State != "Stable" || len(info.Members) != 3 || info.Assignor != "uniform" {
		t.Fatalf("the group is %+v %v %v", info, ok, err)
	}
	for _, m := range info.Members {
		if len(m.Assigned[info0(m.Assigned)]) != 2 {
			t.Errorf("%s has %v, want two partitions each", m.MemberID, m.Assigned)
		}
	}

	// One dies without a word.
	members[0].quit()
	<-members[0].done
	kill(members[0].cl)
	produce(t, producer, numbered("t", "b", 300)...)
	eventually(t, func() string { return spread(members[1:], 6, 1) })
	// More partitions are taken up by those who are there.
	if err := n.Broker.CreatePartitions(within(t), "t", 9, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return spread(members[1:], 9, 300) })
	adm := kadm.NewClient(producer)
	described, err := adm.DescribeConsumerGroups(within(t), "g")
	if err != nil || described.Error() != nil {
		t.Fatal(err, described.Error())
	}
	if g := described["g"]; g.State != "Stable" || len(g.Members) != 2 || g.Epoch != g.AssignmentEpoch {
		t.Errorf("the group is described as %+v", g)
	}
	listed, err := adm.ListGroupsByType(within(t), []string{"consumer"})
	if err != nil || len(listed) != 1 || listed["g"].State != "Stable" {
		t.Errorf("listed: %+v %v", listed, err)
	}
	if listed, err = adm.ListGroupsByType(within(t), []string{"classic"}); err != nil || len(listed) != 0 {
		t.Errorf("listed as classic: %+v %v", listed, err)
	}
	if _, err := adm.DeleteGroup(within(t), "g"); err == nil {
		t.Error("a group with members was deleted")
	}
	for _, m := range members[1:] {
		m.quit()
		<-m.done
		m.cl.Close()
	}
	if info, _, _ := n.Broker.Groups().DescribeConsumer("g"); info.State != "Empty" {
		t.Errorf("after all have left the group is %s", info.State)
	}
	if _, err := adm.DeleteGroup(within(t), "g"); err != nil {
		t.Error(err)
	}
}

func info0[K comparable, V any](m map[K]V) (k K) {
	for k = range m {
		return k
	}
	return k
}

func TestAGroupOfTheNewProtocolSurvivesARestart(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{Broker: func(o *broker.Options) { o.ConsumerHeartbeat = 50 * time.Millisecond }})
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: 4}); err != nil {
		t.Fatal(err)
	}
	produce(t, client(t, n), numbered("t", "a", 10)...)
	m := newMember(t, n, "g", "t", kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()), kgo.InstanceID("one"))
	eventually(t, func() string { return spread([]*member{m}, 4, 10) })
	m.quit()
	<-m.done
	kill(m.cl) // without a word
	before, _, _ := n.Broker.Groups().DescribeConsumer("g")
	for _, checkpoint := range []bool{false, true, false} {
		if checkpoint {
			n.Checkpoint()
		}
		n.Restart()
		info, ok, err := n.Broker.Groups().DescribeConsumer("g")
		if err != nil || !ok || len(info.Members) != 1 || info.Epoch < before.Epoch {
			t.Fatalf("the group is %+v %v", info, err)
		}
		was, is := before.Members[0], info.Members[0]
		if is.MemberID != was.MemberID || is.Instance != "one" || is.Epoch != was.Epoch || !slices.Equal(is.Assigned[info0(is.Assigned)], []int32{0, 1, 2, 3}) {
			t.Fatalf("the member is %+v, was %+v", is, was)
		}
	}
}

// beat sends one heartbeat of the new protocol.
func beat(t *testing.T, cl *kgo.Client, change func(*kmsg.ConsumerGroupHeartbeatRequest)) *kmsg.ConsumerGroupHeartbeatResponse {
	t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.RebalanceTimeoutMillis = "g", -1
	change(req)
	resp, err := req.RequestWith(within(t), cl)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func joining(id, instance string, topics ...string) func(*kmsg.ConsumerGroupHeartbeatRequest) {
	return func(req *kmsg.ConsumerGroupHeartbeatRequest) {
		req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = id, 0, 10_000
		req.SubscribedTopicNames, req.Topics = topics, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if instance != "" {
			req.InstanceID = &instance
		}
	}
}

func TestMembersOfTheNewProtocolAreFenced(t *testing.T) {
	t.Parallel()
	n := quickNode(t)
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: 4}); err != nil {
		t.Fatal(err)
	}
	cl := client(t, n)
	want := func(resp *kmsg.ConsumerGroupHeartbeatResponse, code *kerr.Error) {
		t.Helper()
		if err := kerr.ErrorForCode(resp.ErrorCode); err != error(code) && (code != nil || resp.ErrorCode != 0) {
			why := ""
			if resp.ErrorMessage != nil {
				why = *resp.ErrorMessage
			}
			t.Errorf("got %v (%s), want %v", err, why, code)
		}
	}
	type request = kmsg.ConsumerGroupHeartbeatRequest
	want(beat(t, cl, func(r *request) { r.MemberID, r.MemberEpoch = "m", 3 }), kerr.GroupIDNotFound)
	want(beat(t, cl, func(r *request) { r.MemberID, r.MemberEpoch = "m", 0 }), kerr.InvalidRequest)
	want(beat(t, cl, func(r *request) { joining("m", "", "t")(r); r.ServerAssignor = kmsg.StringPtr("best") }), kerr.UnsupportedAssignor)
	want(beat(t, cl, func(r *request) { joining("m", "")(r); r.SubscribedTopicRegex = kmsg.StringPtr("(") }), kerr.InvalidRegularExpression)
	if _, ok, _ := n.Broker.Groups().Describe("g"); ok {
		t.Error("a refused member leaves a group behind")
	}
	first := beat(t, cl, joining("m", "", "t"))
	want(first, nil)
	if first.MemberEpoch < 1 || len(first.Assignment.Topics) != 1 || len(first.Assignment.Topics[0].Partitions) != 4 {
		t.Fatalf("joined: %+v", first)
	}
	want(beat(t, cl, func(r *request) { r.MemberID, r.MemberEpoch = "m", 99 }), kerr.FencedMemberEpoch)
	want(beat(t, cl, func(r *request) { r.MemberID, r.MemberEpoch = "x", 1 }), kerr.UnknownMemberID)
	same := beat(t, cl, func(r *request) { r.MemberID, r.MemberEpoch = "m", first.MemberEpoch })
	want(same, nil)
	if same.Assignment != nil {
		t.Errorf("a heartbeat that brings no news is told %+v", same.Assignment)
	}

	// A static member comes and goes.
	second := beat(t, cl, joining("s1", "inst", "t"))
	want(second, nil)
	want(beat(t, cl, joining("s2", "inst", "t")), kerr.UnreleasedInstanceID)
	leave := func(id string, epoch int32) *kmsg.ConsumerGroupHeartbeatResponse {
		return beat(t, cl, func(r *request) { r.MemberID, r.MemberEpoch, r.InstanceID = id, epoch, kmsg.StringPtr("inst") })
	}
	epoch := func() int32 { info, _, _ := n.Broker.Groups().DescribeConsumer("g"); return info.Epoch }
	before := epoch()
	want(leave("s1", -2), nil)
	want(beat(t, cl, joining("s2", "inst", "t")), nil)
	if epoch() != before {
		t.Error("a static member that comes back makes the group rebalance")
	}
	want(leave("s1", second.MemberEpoch), kerr.FencedInstanceID)
	want(leave("s2", -1), nil)
	if epoch() == before {
		t.Error("a static member that leaves for good does not make the group rebalance")
	}

	// Offsets are taken under the member's epoch only.
	commit := func(version int16, epoch int32) error {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.MemberID, req.Generation = "g", "m", epoch
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic = "t"
		if topic, ok := n.Broker.Topic("t"); ok {
			rt.TopicID = topic.ID
		}
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Offset = 1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		opts := kgo.MaxVersions(cappedAt(8, version))
		resp, err := req.RequestWith(within(t), client(t, n, opts))
		if err != nil {
			t.Fatal(err)
		}
		return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	now := beat(t, cl, func(r *request) {
		joining("m", "", "t")(r)
	})
	want(now, nil)
	if err := commit(10, now.MemberEpoch); err != nil {
		t.Errorf("a commit is refused: %v", err)
	}
	if err := commit(10, now.MemberEpoch+1); err != kerr.StaleMemberEpoch {
		t.Errorf("a commit under a later epoch: %v", err)
	}
	if err := commit(8, now.MemberEpoch); err != kerr.UnsupportedVersion {
		t.Errorf("a commit of an old version: %v", err)
	}
}

func TestAServerSideExpressionFindsNewTopics(t *testing.T) {
	t.Parallel()
	n := quickNode(t)
	producer := client(t, n)
	produce(t, producer, numbered("logs-a", "a", 5)...)
	produce(t, producer, numbered("other", "o", 5)...)
	cl := client(t, n, kgo.ConsumerGroup("g"), kgo.ConsumeRegex(), kgo.ConsumeTopics("logs-.*"), kgo.ServerSideBalancer(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	consume(t, cl, 5)
	info, _, _ := n.Broker.Groups().DescribeConsumer("g")
	if len(info.Members) != 1 || info.Members[0].Regex == "" {
		t.Fatalf("the group is %+v", info)
	}
	produce(t, producer, numbered("logs-b", "b", 5)...)
	for _, r := range consume(t, cl, 5) {
		if r.Topic != "logs-b" {
			t.Errorf("read %s of %s", r.Value, r.Topic)
		}
	}
}

func TestAFleetMovesToTheNewProtocolAndBack(t *testing.T) {
	t.Parallel()
	n := quickNode(t)
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: 6}); err != nil {
		t.Fatal(err)
	}
	producer := client(t, n, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	seen := map[string]bool{}
	stop := func(m *member) {
		m.quit()
		<-m.done
		m.cl.Close()
		for v := range m.seen {
			seen[v] = true
		}
	}
	kind := func() string {
		info, _, _ := n.Broker.Groups().Describe("g")
		return info.Type
	}
	old := func() *member {
		return newMember(t, n, "g", "t", kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	young := func() *member {
		return newMember(t, n, "g", "t", kgo.ServerSideBalancer(), kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	produce(t, producer, numbered("t", "a", 120)...)
	members := []*member{old(), old()}
	eventually(t, func() string { return spread(members, 6, 120) })
	if kind() != broker.GroupClassic {
		t.Fatalf("the group is %s", kind())
	}
	members = append(members, young())
	eventually(t, func() string { return spread(members, 6, 120) })
	if kind() != broker.GroupConsumer {
		t.Fatalf("with a member of the new protocol the group is %s", kind())
	}
	stop(members[0])
	members = append(members[1:], young())
	produce(t, producer, numbered("t", "b", 120)...)
	eventually(t, func() string { return spread(members, 6, 1) })
	stop(members[0])
	members = members[1:]
	eventually(t, func() string { return spread(members, 6, 1) })
	// And back.
	members = append(members, old())
	eventually(t, func() string { return spread(members, 6, 0) })
	if kind() != broker.GroupConsumer {
		t.Fatalf("with members of both protocols the group is %s", kind())
	}
	stop(members[0])
	stop(members[1])
	members = members[2:]
	produce(t, producer, numbered("t", "c", 120)...)
	eventually(t, func() string { return spread(members, 6, 120) })
	if kind() != broker.GroupClassic {
		t.Fatalf("without members of the new protocol the group is %s", kind())
	}
	stop(members[0])
	if len(seen) != 360 {
		t.Errorf("%d of 360 records were read", len(seen))
	}
	// An empty group is of the protocol of who comes next.
	m := young()
	eventually(t, func() string { return spread([]*member{m}, 6, 0) })
	if kind() != broker.GroupConsumer {
		t.Fatalf("the group is %s", kind())
	}
	stop(m)
	m = old()
	eventually(t, func() string { return spread([]*member{m}, 6, 0) })
	if kind() != broker.GroupClassic {
		t.Fatalf("the group is %s", kind())
	}
}

func TestOffsetsAreDeletedUnlessInUse(t *testing.T) {
	t.Parallel()
	n := quickNode(t)
	cl := client(t, n)
	produce(t, cl, numbered("t", "a", 5)...)
	produce(t, cl, numbered("u", "a", 5)...)
	adm := kadm.NewClient(cl)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "t", At: 3, LeaderEpoch: -1})
	offsets.Add(kadm.Offset{Topic: "u", At: 4, LeaderEpoch: -1})
	if err := adm.CommitAllOffsets(within(t), "g", offsets); err != nil {
		t.Fatal(err)
	}
	m := newMember(t, n, "g", "t", kgo.ServerSideBalancer())
	eventually(t, func() string { return spread([]*member{m}, 1, 0) })
	var set kadm.TopicsSet
	set.Add("t", 0)
	set.Add("u", 0)
	deleted, err := adm.DeleteOffsets(within(t), "g", set)
	if err != nil {
		t.Fatal(err)
	}
	if err, _ := deleted.Lookup("t", 0); err != kerr.GroupSubscribedToTopic {
		t.Errorf("an offset in use: %v", err)
	}
	if err, ok := deleted.Lookup("u", 0); err != nil || !ok {
		t.Errorf("an offset of nobody: %v %v", err, ok)
	}
	if o, ok, _ := n.Broker.Groups().Committed("g", "u", 0); ok {
		t.Errorf("it is still there: %+v", o)
	}
}
