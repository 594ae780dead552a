package kafka

import (
	"testing"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestNothingIsBothServedAndMissing(t *testing.T) {
	t.Parallel()
	for key := range missing {
		if apis[key] != nil {
			t.Errorf("%s is served: take it off the list of what is missing", kmsg.NameForKey(key))
		}
	}
	for key, a := range apis {
		req := kmsg.RequestForKey(key)
		if req == nil || a.max > req.MaxVersion() || a.min > a.max {
			t.Errorf("key %d announces versions %d to %d", key, a.min, a.max)
		}
	}
}

func TestAnnouncedVersionsAreWhatClientsNeed(t *testing.T) {
	t.Parallel()
	if apis[keyProduce].min != 0 {
		t.Error("Produce must be announced from version 0 on, or librdkafka switches compression off")
	}
	// Topic ids in Produce 13, Fetch 13, OffsetCommit 10 and OffsetFetch 10 need those of Metadata 10.
	if apis[3].max < 10 {
		t.Error("Metadata 10 or later is needed for topic ids")
	}
}

// encodeProduce builds the body of a produce request.
func encodeProduce(version int16) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(version)
	req.Acks = -1
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = "t", [16]byte{1}
	for i := range int32(3) {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i, []byte("records")
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return req.AppendTo(nil)
}

func TestProduceIsTakenApartAsItIsPutTogether(t *testing.T) {
	t.Parallel()
	c := &conn{s: &Server{b: new(broker.Broker)}}
	for version := int16(0); version <= apis[keyProduce].max; version++ {
		p := &produceCall{c: c, version: version}
		if _, err := p.parse(encodeProduce(version)); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if p.acks != -1 || len(p.topics) != 1 || len(p.items) != 3 || string(p.items[2].Batch) != "records" || p.index[2] != 2 {
			t.Fatalf("version %d: %+v", version, p)
		}
		if version < 13 && string(p.topics[0].name) != "t" || version >= 13 && p.topics[0].id != (broker.TopicID{1}) {
			t.Fatalf("version %d: topic %+v", version, p.topics[0])
		}
		// And the answer is read by the other side.
		body, _ := p.appendTo(nil)
		resp := kmsg.NewPtrProduceResponse()
		resp.SetVersion(version)
		if err := resp.ReadFrom(body); err != nil {
			t.Fatalf("version %d: the response: %v", version, err)
		}
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 3 || resp.Topics[0].Partitions[1].ErrorCode == 0 {
			t.Fatalf("version %d: %+v", version, resp)
		}
	}
}

func TestFetchResponsesAreReadByTheOtherSide(t *testing.T) {
	t.Parallel()
	topics := []*fetchTopic{{name: "a", id: broker.TopicID{1}}, {name: "b", id: broker.TopicID{2}}}
	for version := apis[keyFetch].min; version <= apis[keyFetch].max; version++ {
		r := &fetchResponse{version: version, sessionID: 7, committed: version%2 == 0, parts: []fetched{
			{topic: topics[0], index: 0, high: 10, start: 3, records: []byte("one")},
			{topic: topics[0], index: 1, high: -1, start: -1, code: 1},
			{topic: topics[1], index: 5, high: 0, start: 0},
		}}
		body, _ := r.appendTo(nil)
		resp := kmsg.NewPtrFetchResponse()
		resp.SetVersion(version)
		if err := resp.ReadFrom(body); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if len(resp.Topics) != 2 || len(resp.Topics[0].Partitions) != 2 || string(resp.Topics[0].Partitions[0].RecordBatches) != "one" ||
			resp.Topics[0].Partitions[1].ErrorCode != 1 || resp.Topics[1].Partitions[0].Partition != 5 {
			t.Fatalf("version %d: %+v", version, resp)
		}
		if version >= 7 && resp.SessionID != 7 {
			t.Fatalf("version %d: session %d", version, resp.SessionID)
		}
	}
}

func FuzzProduceRequest(f *testing.F) {
	for version := int16(0); version <= 13; version++ {
		f.Add(version, encodeProduce(version))
	}
	c := &conn{s: &Server{b: new(broker.Broker)}}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 0 || version > 13 {
			return
		}
		p := &produceCall{c: c, version: version}
		if _, err := p.parse(body); err == nil {
			p.appendTo(nil)
		}
	})
}

func FuzzRequestHeader(f *testing.F) {
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0, 1, 'c', 0})
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := parseHeader(frame, "")
		if err == nil && len(body) > len(frame) {
			t.Fatal(h)
		}
	})
}

func TestSessionsTellOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	ss := newSessions(2)
	request := func(id, epoch int32, partitions ...int32) *kmsg.FetchRequest {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.SessionID, req.SessionEpoch = 12, id, epoch
		if len(partitions) > 0 {
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic = "t"
			for _, p := range partitions {
				rp := kmsg.NewFetchRequestTopicPartition()
				rp.Partition = p
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
		}
		return req
	}
	s, want, code := ss.open(request(0, 0, 0, 1, 2))
	if code != 0 || s == nil || len(want) != 3 {
		t.Fatalf("new session: %v %v %d", s, want, code)
	}
	s.mu.Unlock()
	if _, _, code := ss.open(request(s.id, 5)); code != 71 {
		t.Fatalf("wrong epoch: %d", code)
	}
	forget := request(s.id, 1, 7)
	forget.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "t", Partitions: []int32{1}}}
	_, want, code = ss.open(forget)
	if code != 0 || len(want) != 3 || want[0].index != 0 || want[1].index != 2 || want[2].index != 7 || want[2].topic != want[0].topic {
		t.Fatalf("after a change: %+v %d", want, code)
	}
	fp := want[0]
	fp.told, fp.high, fp.start = true, 4, 0
	if s.wants(fp, &fetched{high: 4}) || !s.wants(fp, &fetched{high: 5}) || !s.wants(fp, &fetched{high: 4, code: 1}) || !s.wants(fp, &fetched{high: 4, records: []byte("r")}) {
		t.Fatal("what is news is misjudged")
	}
	s.rotate()
	if s.order[2] != fp {
		t.Fatal("the first one stays first")
	}
	s.mu.Unlock()
	// Two more: the oldest gives way.
	for range 2 {
		n, _, _ := ss.open(request(0, 0, 0))
		n.mu.Unlock()
	}
	if _, _, code := ss.open(request(s.id, 2)); code != 70 {
		t.Fatalf("an evicted session: %d", code)
	}
	if s, want, code := ss.open(request(0, -1, 0)); s != nil || len(want) != 1 || code != 0 {
		t.Fatal("a fetch without a session gets one")
	}
}
