package cli

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stream is a connection that gives what it is told to, in pieces of a size.
type stream struct {
	net.Conn
	in   *bytes.Reader
	size int
}

func (s *stream) Read(b []byte) (int, error)  { return s.in.Read(b[:min(len(b), s.size)]) }
func (s *stream) Write(b []byte) (int, error) { return len(b), nil }

func TestWhatTheServerSaysIsOverheard(t *testing.T) {
	t.Parallel()
	formatter := kmsg.NewRequestFormatter()
	frame := func(id byte, tags bool, body []byte) []byte {
		head := []byte{0, 0, 0, id}
		if tags {
			head = append(head, 0)
		}
		size := len(head) + len(body)
		return append([]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}, append(head, body...)...)
	}
	for _, version := range []int16{8, 9, 12} {
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		other := kmsg.NewPtrMetadataRequest()
		other.SetVersion(7)
		requests := append(formatter.AppendRequest(nil, other, 1), formatter.AppendRequest(nil, req, 2)...)

		resp := kmsg.NewPtrProduceResponse()
		resp.SetVersion(version)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic = "t"
		for i, code := range []*kerr.Error{nil, kerr.InvalidRecord, kerr.KafkaStorageError} {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition = int32(i)
			if code != nil {
				p.ErrorCode = code.Code
				p.ErrorMessage = kmsg.StringPtr("the reason")
			}
			if code == kerr.InvalidRecord {
				p.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 3, ErrorMessage: kmsg.StringPtr("the third")}}
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
		answers := append(frame(1, false, []byte("not looked at")), frame(2, resp.IsFlexible(), resp.AppendTo(nil))...)

		for _, size := range []int{1, 3, 7, len(answers) + len(requests)} {
			var again []reason
			r := newReasons(func(said reason) { again = append(again, said) })
			c := &overheard{Conn: &stream{in: bytes.NewReader(answers), size: size}, reasons: r, waiting: map[int32]int16{}}
			for rest := requests; len(rest) > 0; {
				n, _ := c.Write(rest[:min(size, len(rest))])
				rest = rest[n:]
			}
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, answers) {
				t.Fatalf("version %d in pieces of %d: the client gets something else (%v)", version, size, err)
			}
			if _, ok := r.get(0); ok {
				t.Errorf("version %d in pieces of %d: a batch that was written is taken as refused", version, size)
			}
			said, ok := r.get(1)
			if !ok || said.code != kerr.InvalidRecord || said.message != "the reason" || len(said.records) != 1 || said.records[0].RelativeOffset != 3 {
				t.Errorf("version %d in pieces of %d: heard %v, %v", version, size, said, ok)
			}
			if len(again) != 1 || again[0].code != kerr.KafkaStorageError {
				t.Errorf("version %d in pieces of %d: heard %v to be tried again", version, size, again)
			}
			if len(c.waiting) > 0 {
				t.Errorf("version %d in pieces of %d: %d requests are still waited for", version, size, len(c.waiting))
			}
		}
	}
}
