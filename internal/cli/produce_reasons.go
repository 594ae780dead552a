package cli

import (
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The client tells the code that a batch was refused with, and drops what the server says about it: why, and which of its records are wrong (KIP-467).
// So the answers to produce requests are read once more on their way from the connection to the client.

// reason is what a server said of a batch that it refused.
type reason struct {
	code    *kerr.Error
	message string
	records []kmsg.ProduceResponseTopicPartitionErrorRecord
}

// reasons keeps the first refusal in each partition of the one topic that is produced to.
type reasons struct {
	retried func(reason) // is told of refusals that the client meets by trying again

	mu sync.Mutex
	of map[int32]reason
}

func newReasons(retried func(reason)) *reasons {
	return &reasons{retried: retried, of: map[int32]reason{}}
}

func (r *reasons) get(partition int32) (reason, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got, ok := r.of[partition]
	return got, ok
}

func (r *reasons) note(resp *kmsg.ProduceResponse) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			code := kerr.TypedErrorForCode(p.ErrorCode)
			if code == nil {
				continue
			}
			said := reason{code: code, records: p.ErrorRecords}
			if p.ErrorMessage != nil {
				said.message = *p.ErrorMessage
			}
			if code.Retriable {
				r.retried(said)
				continue
			}
			r.mu.Lock()
			if _, ok := r.of[p.Partition]; !ok {
				r.of[p.Partition] = said
			}
			r.mu.Unlock()
		}
	}
}

// dial connects, and listens in on the connection.
func (r *reasons) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &overheard{Conn: conn, reasons: r, waiting: map[int32]int16{}}, nil
}

// overheard is a connection whose produce requests and their answers are noted. One goroutine reads from it and one writes to it.
type overheard struct {
	net.Conn
	reasons *reasons
	out, in frames

	mu      sync.Mutex
	waiting map[int32]int16 // versions of the produce requests without an answer, by correlation id
}

// An answer longer than this is not looked at: the client gets it all the same. A request's first bytes say what it is.
const (
	maxOverheard  = 1 << 20
	requestPrefix = 8
)

func (o *overheard) Write(b []byte) (int, error) {
	// Before it is sent: the answer may be there before Write returns.
	o.out.feed(b, requestPrefix, func(head []byte) {
		if len(head) < requestPrefix || binary.BigEndian.Uint16(head) != uint16(kmsg.Produce) {
			return
		}
		o.mu.Lock()
		o.waiting[int32(binary.BigEndian.Uint32(head[4:]))] = int16(binary.BigEndian.Uint16(head[2:]))
		o.mu.Unlock()
	})
	return o.Conn.Write(b)
}

func (o *overheard) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	o.in.feed(b[:n], maxOverheard, o.answered)
	return n, err
}

func (o *overheard) answered(frame []byte) {
	if len(frame) < 4 {
		return
	}
	id := int32(binary.BigEndian.Uint32(frame))
	o.mu.Lock()
	version, ok := o.waiting[id]
	delete(o.waiting, id)
	o.mu.Unlock()
	if !ok {
		return
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(version)
	body := frame[4:]
	if resp.IsFlexible() { // the header's tags; there are none
		if len(body) == 0 || body[0] != 0 {
			return
		}
		body = body[1:]
	}
	if resp.ReadFrom(body) == nil {
		o.reasons.note(resp)
	}
}

// frames takes a stream of frames, each with its length before it, apart.
type frames struct {
	size []byte // of the frame that comes, as far as it is there
	left int    // bytes of the frame that have not come
	keep []byte // the beginning of the frame
}

// feed takes more of the stream, and calls whole with the first bytes of every frame that is complete by it, at most so many.
func (f *frames) feed(b []byte, most int, whole func([]byte)) {
	for len(b) > 0 {
		if f.left == 0 {
			n := min(4-len(f.size), len(b))
			f.size, b = append(f.size, b[:n]...), b[n:]
			if len(f.size) < 4 {
				return
			}
			f.left, f.size = int(binary.BigEndian.Uint32(f.size)), f.size[:0]
			f.keep = f.keep[:0]
			continue
		}
		n := min(f.left, len(b))
		f.keep = append(f.keep, b[:min(n, most-len(f.keep))]...)
		f.left, b = f.left-n, b[n:]
		if f.left == 0 {
			whole(f.keep)
		}
	}
}
