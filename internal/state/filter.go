package state

// A filter remembers keys that left memory and may be in kv, with about 10 bits a key: what it does not have is not in kv. It
// is a chain of blocked Bloom filters (a key sets 6 bits in one line of 64 bytes), each larger than the one before.
// Keys are never taken out; the filter goes with its table or window.
type filter struct {
	layers []layer
}

type layer struct {
	words []uint64
	addr  uint32
	order uint8
	n     int // keys in it
	cap   int
}

const (
	lineWords = 8
	bigLayer  = 10 // 512 KiB: from here on layers grow by two, below by four
)

func (l *layer) line(hash uint64) []uint64 {
	lines := uint64(len(l.words) / lineWords)
	i := (hash & 0xffffffff) * lines >> 32
	return l.words[i*lineWords : i*lineWords+lineWords]
}

// bitAt is the i-th of a key's bits within its line.
func bitAt(hash uint64, i uint) (word int, bit uint64) {
	h := hash * 0x9e3779b97f4a7c15 >> (9 * i % 55)
	return int(h >> 6 & (lineWords - 1)), 1 << (h & 63)
}

func (l *layer) has(hash uint64) bool {
	line := l.line(hash)
	for i := uint(0); i < 6; i++ {
		w, b := bitAt(hash, i)
		if line[w]&b == 0 {
			return false
		}
	}
	return true
}

func (f *filter) has(hash uint64) bool {
	for i := len(f.layers) - 1; i >= 0; i-- { // the last one has most of the keys
		if f.layers[i].has(hash) {
			return true
		}
	}
	return false
}

func (f *filter) empty() bool { return len(f.layers) == 0 }

func (f *filter) add(p *pool, hash uint64) {
	if f.has(hash) {
		return
	}
	n := len(f.layers)
	if n == 0 || f.layers[n-1].n >= f.layers[n-1].cap {
		order := uint8(0)
		switch {
		case n > 0 && f.layers[n-1].order < bigLayer:
			order = f.layers[n-1].order + 2
		case n > 0:
			order = f.layers[n-1].order + 1
		}
		l := layer{addr: p.alloc(order), order: order, cap: orderBytes(order) * 8 / 10}
		l.words = p.words(l.addr, orderBytes(order)/8)
		clear(l.words)
		f.layers = append(f.layers, l)
		n++
	}
	l := &f.layers[n-1]
	l.n++
	line := l.line(hash)
	for i := uint(0); i < 6; i++ {
		w, b := bitAt(hash, i)
		line[w] |= b
	}
}

// keys is how many keys it has.
func (f *filter) keys() (n int) {
	for i := range f.layers {
		n += f.layers[i].n
	}
	return n
}

func (f *filter) bytes() (n int64) {
	for i := range f.layers {
		n += int64(orderBytes(f.layers[i].order))
	}
	return n
}

func (f *filter) drop(p *pool) {
	for _, l := range f.layers {
		p.release(l.addr, l.order)
	}
	f.layers = nil
}
