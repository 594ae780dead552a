package journal

import (
	"math/bits"
	"sync"
)

// Unit is what the journal keeps whole or not at all. It is built by one goroutine, and belongs to the journal after Commit.
type Unit struct {
	entries []entry
	size    int // of the payloads
	room    []byte
	first   []byte    // the unit's own first chunk, kept with it in the pool
	chunks  []*[]byte // further ones
	lsn     LSN
	stream  uint32 // of a unit in fragments
	aborted bool   // given up between two fragments; guarded by Journal.mu
}

type entry struct {
	kind    Kind
	payload []byte
}

const (
	firstChunkBytes = 2 << 10
	minChunkBits    = 13 // 8 KiB
	maxChunkBits    = 26 // 64 MiB; larger ones are left to the collector
	// entryHeaderBytes is what an entry takes on disk beside its payload.
	entryHeaderBytes = 5
)

var (
	unitPool  = sync.Pool{New: func() any { return &Unit{first: make([]byte, 0, firstChunkBytes)} }}
	chunkPool [maxChunkBits + 1]sync.Pool
)

// takeChunk returns an empty chunk with room for n bytes, of a size that is a power of two.
func takeChunk(n int) *[]byte {
	b := max(bits.Len(uint(n-1)), minChunkBits)
	if b <= maxChunkBits {
		if c, ok := chunkPool[b].Get().(*[]byte); ok {
			return c
		}
		n = 1 << b
	}
	c := make([]byte, 0, n)
	return &c
}

func giveChunk(c *[]byte) {
	b := bits.Len(uint(cap(*c) - 1))
	if b <= maxChunkBits && cap(*c) == 1<<b {
		chunkPool[b].Put(c)
	}
}

// NewUnit takes an empty unit from the pool; the journal gives it back once it is durable and applied.
func NewUnit() *Unit {
	u := unitPool.Get().(*Unit)
	u.room = u.first
	return u
}

// Free gives back a unit that was never committed.
func (u *Unit) Free() {
	for i, c := range u.chunks {
		giveChunk(c)
		u.chunks[i] = nil
	}
	clear(u.entries)
	if cap(u.entries) > 1<<12 {
		u.entries = nil
	}
	*u = Unit{entries: u.entries[:0], first: u.first, chunks: u.chunks[:0]}
	unitPool.Put(u)
}

// Reserve adds an entry with a payload of n bytes for the caller to fill in place before Commit; its first HeadLen bytes
// may still change in Commit's sequence function. The slice never moves. Its bytes are not zeroed.
func (u *Unit) Reserve(kind Kind, n int) []byte {
	if cap(u.room)-len(u.room) < n {
		// What is left of the old chunk is lost; doubling keeps that, and the number of chunks, small.
		c := takeChunk(max(n, min(4*cap(u.room), 1<<18)))
		u.chunks = append(u.chunks, c)
		u.room = (*c)[:0]
	}
	from := len(u.room)
	u.room = u.room[:from+n]
	p := u.room[from : from+n : from+n]
	u.entries = append(u.entries, entry{kind: kind, payload: p})
	u.size += n
	return p
}

// Append adds an entry whose payload is the parts one after the other; they are copied.
func (u *Unit) Append(kind Kind, parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst := u.Reserve(kind, n)
	for _, p := range parts {
		dst = dst[copy(dst, p):]
	}
}

// Len is the number of entries.
func (u *Unit) Len() int { return len(u.entries) }

// Size is the number of bytes in payloads.
func (u *Unit) Size() int { return u.size }

// Entry returns the i-th entry; its payload may be changed as that of Reserve.
func (u *Unit) Entry(i int) (Kind, []byte) { return u.entries[i].kind, u.entries[i].payload }

// encodedLen is what the unit takes in one fragment, without the fragment's header.
func (u *Unit) encodedLen() int { return u.size + entryHeaderBytes*len(u.entries) }

// headsLen is what the last fragment of the unit takes when the rest went before; bodyLen is that rest.
func (u *Unit) headsLen() int {
	n := 0
	for i := range u.entries {
		n += entryHeaderBytes + min(len(u.entries[i].payload), HeadLen)
	}
	return n
}

func (u *Unit) bodyLen() int {
	n := 0
	for i := range u.entries {
		n += max(0, len(u.entries[i].payload)-HeadLen)
	}
	return n
}
