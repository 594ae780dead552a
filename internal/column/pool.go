package column

import "sync"

// Pool recycles batches. The zero value is ready. It may be used by several goroutines.
//
// Who gets a batch owns it until Put; nothing of it, views and Bytes included, may be kept after that.
type Pool struct{ pool sync.Pool }

// Get returns an empty batch with columns of the given types.
func (p *Pool) Get(types []Type) *Batch {
	b, _ := p.pool.Get().(*Batch)
	if b == nil {
		b = &Batch{}
	}
	b.Reset(types)
	return b
}

// Put gives a batch back.
func (p *Pool) Put(b *Batch) {
	if b != nil {
		p.pool.Put(b)
	}
}
