package kafka

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/journal"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Produce (0)
//
// Versions 0 to 2 are announced, since librdkafka takes their absence for a broker without compression (KAFKA-18659), and refused partition by
// partition when they are sent: they carry the message sets from before 0.11.
//
// v3 transactional id, v5 log start offset, v7 zstd, v8 errors per record (KIP-467), v9 flexible, v10 current leader (KIP-951; there is one
// leader, so it is never sent), v11 TRANSACTION_ABORTABLE, v12 a partition becomes part of the transaction by it (KIP-890), v13 topic ids (KIP-516).
//
// The request is taken apart by hand: the records stay where they are in the frame until the broker copies them into the journal's buffer.
const keyProduce = 0

func init() { register(api{key: keyProduce, min: 0, max: 13}) }

// produceCall is a produce request on its way; pooled.
type produceCall struct {
	c       *conn
	version int16
	acks    int16
	topics  []producedTopic
	items   []broker.ProduceItem
	index   []int32 // partition numbers, as asked for
	wait    journal.LSN
}

// producedTopic is one topic of the request; its partitions are items[from:to].
type producedTopic struct {
	name     string // empty from v13 on
	id       broker.TopicID
	from, to int
}

var produceCalls = sync.Pool{New: func() any { return new(produceCall) }}

// keepItems is how large a produceCall may be to be used again.
const keepItems = 4096

func (p *produceCall) heavy() bool { return false }

func (p *produceCall) release() {
	clear(p.items)
	if cap(p.items) > keepItems || cap(p.topics) > keepItems {
		return
	}
	p.c, p.topics, p.items, p.index = nil, p.topics[:0], p.items[:0], p.index[:0]
	produceCalls.Put(p)
}

// produce takes the request apart, sequences it, and returns what is to be answered; nil when nobody wants an answer.
func (c *conn) produce(h *requestHeader, body []byte) (*produceCall, error) {
	p := produceCalls.Get().(*produceCall)
	p.c, p.version, p.wait = c, h.version, 0
	transactional, err := p.parse(body)
	if err != nil {
		return nil, err
	}
	refuse := error(nil)
	switch {
	case h.version < 3:
		refuse = broker.ErrOldFormat
	case p.acks < -1 || p.acks > 1:
		refuse = errAcks
	}
	if refuse != nil {
		for i := range p.items {
			p.items[i].Err = refuse
		}
	}
	if transactional != "" && refuse == nil {
		p.wait = c.s.b.Transactions().Produce(transactional, h.version >= 12, p.items)
	} else {
		p.wait = c.s.b.Produce(p.items)
	}
	for i := range p.items {
		p.items[i].Batch = nil // the frame is used again
	}
	switch p.acks {
	case 0:
		defer p.release()
		for i := range p.items {
			if p.items[i].Err != nil {
				return nil, errDrop // the only way to tell a client that wants no answers
			}
		}
		return nil, nil
	case 1:
		p.wait = 0
	}
	return p, nil
}

// ready says that everything is durable that the answer promises.
func (p *produceCall) ready() bool { return p.wait == 0 || p.wait <= p.c.s.b.Durable() }

// await returns the answer when that is so.
func (p *produceCall) await() (response, error) {
	if !p.ready() {
		// Not the connection's context: what is in the journal is answered for even while the server stops.
		if err := p.c.s.b.Wait(p.c.s.ctx, p.wait); err != nil {
			// The journal has failed. Nobody knows whether the records will be there after a restart, so nothing is said.
			p.c.s.log.Error("a produce request cannot be acknowledged", "err", err)
			return nil, errDrop
		}
	}
	return p, nil
}

var errAcks = errors.New("acks must be 0, 1 or -1 (all)")

// parse fills topics and items. Unknown partitions become items with an error.
func (p *produceCall) parse(body []byte) (transactional string, err error) {
	w := wire{src: body}
	flexible := p.version >= 9
	if p.version >= 3 {
		id, _ := w.string(flexible)
		transactional = string(id)
	}
	p.acks = w.int16()
	w.int32() // timeout: a sync takes as long as it takes
	for range w.array(flexible, 3) {
		t := producedTopic{from: len(p.items)}
		var topic *broker.Topic
		known := false
		if p.version >= 13 {
			copy(t.id[:], w.take(16))
			topic, known = p.c.s.b.TopicByID(t.id)
		} else {
			name, _ := w.string(flexible)
			if topic, known = p.c.s.b.Topic(string(name)); known {
				t.name = topic.Name
			} else {
				t.name = string(name)
			}
		}
		for range w.array(flexible, 5) {
			index := w.int32()
			item := broker.ProduceItem{Batch: w.bytes(flexible)}
			w.tags(flexible)
			switch {
			case !known && p.version >= 13:
				item.Err = errTopicID
			case !known:
				item.Err = broker.ErrUnknownTopic
			default:
				if item.P = topic.Partition(index); item.P == nil {
					item.Err = broker.ErrUnknownTopic
				}
			}
			if item.Err == nil && item.Batch == nil {
				item.Err = broker.ErrCorruptBatch
			}
			if len(p.items) >= maxProduceItems {
				return "", errTooMany
			}
			p.items, p.index = append(p.items, item), append(p.index, index)
		}
		w.tags(flexible)
		t.to = len(p.items)
		p.topics = append(p.topics, t)
		if w.bad {
			return "", errWire
		}
		if len(p.topics) > maxProduceItems {
			return "", errTooMany
		}
	}
	w.tags(flexible)
	if w.bad {
		return "", errWire
	}
	return transactional, nil
}

// maxProduceItems bounds the partitions of one request, which take far more memory here than on the wire.
const maxProduceItems = 100_000

var errTooMany = errors.New("a produce request names too many partitions")

var errTopicID = errors.New("no topic has this id")

func (p *produceCall) appendTo(dst []byte) ([]byte, []part) {
	v, flexible := p.version, p.version >= 9
	dst = appendArrayLen(dst, len(p.topics), flexible)
	for _, t := range p.topics {
		if v >= 13 {
			dst = append(dst, t.id[:]...)
		} else {
			dst = appendString(dst, t.name, flexible)
		}
		dst = appendArrayLen(dst, t.to-t.from, flexible)
		for i := t.from; i < t.to; i++ {
			dst = p.appendItem(dst, i)
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	if v >= 1 {
		dst = binary.BigEndian.AppendUint32(dst, 0) // throttle
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst, nil
}

func (p *produceCall) appendItem(dst []byte, i int) []byte {
	it, v, flexible := &p.items[i], p.version, p.version >= 9
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(p.index[i]))
	dst = be.AppendUint16(dst, uint16(produceCode(it.Err, v)))
	base, at, start := it.Base, it.AppendTime, int64(-1)
	if it.Err != nil {
		base, at = -1, -1
	} else if v >= 5 {
		if s, err := it.P.StartOffset(); err == nil {
			start = s
		}
	}
	dst = be.AppendUint64(dst, uint64(base))
	if v >= 2 {
		dst = be.AppendUint64(dst, uint64(at))
	}
	if v >= 5 {
		dst = be.AppendUint64(dst, uint64(start))
	}
	if v >= 8 {
		var records *broker.InvalidRecordsError
		if errors.As(it.Err, &records) {
			dst = appendArrayLen(dst, len(records.Records), flexible)
			for _, r := range records.Records {
				dst = be.AppendUint32(dst, uint32(r.Index))
				dst = appendNullableString(dst, &r.Message, flexible)
				if flexible {
					dst = append(dst, 0)
				}
			}
		} else {
			dst = appendArrayLen(dst, 0, flexible)
		}
		dst = appendNullableString(dst, explain(it.Err), flexible)
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

func produceCode(err error, version int16) int16 {
	switch {
	case version >= 11 && errors.Is(err, broker.ErrNotInTransaction):
		return kerr.TransactionAbortable.Code
	case errors.Is(err, errAcks):
		return kerr.InvalidRequiredAcks.Code
	case errors.Is(err, errTopicID):
		return kerr.UnknownTopicID.Code
	}
	return code(err)
}

func appendArrayLen(dst []byte, n int, compact bool) []byte {
	if compact {
		return binary.AppendUvarint(dst, uint64(n)+1)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

func appendString(dst []byte, s string, compact bool) []byte {
	if compact {
		dst = binary.AppendUvarint(dst, uint64(len(s))+1)
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	}
	return append(dst, s...)
}

func appendNullableString(dst []byte, s *string, compact bool) []byte {
	switch {
	case s != nil && len(*s) > 1<<12:
		return appendString(dst, (*s)[:1<<12], compact)
	case s != nil:
		return appendString(dst, *s, compact)
	case compact:
		return append(dst, 0)
	}
	return binary.BigEndian.AppendUint16(dst, 0xffff)
}
