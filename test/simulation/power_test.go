package simulation

import (
	"math/rand/v2"
	"sync"

	"github.com/leat-io/leat/internal/vfs"
)

// power is a file system that can lose its power before any operation that changes it: what a machine would find then is kept aside, while the
// running node goes on writing into what nobody will look at again.
type power struct {
	vfs.FS // of mem, with the operations below
	mem    *vfs.Mem

	mu      sync.Mutex
	rng     *rand.Rand
	left    int // operations until the power goes, 0 when that is not planned
	percent int // of the writes not synced that survive
	before  func() any

	found *vfs.Mem // after the power has gone
	known any      // what before said
}

func newPower(mem *vfs.Mem, rng *rand.Rand) *power { return &power{FS: mem, mem: mem, rng: rng} }

// plan makes the power go before the n-th operation from now on. before is called just then: whatever was acknowledged by that time must be found.
func (p *power) plan(n, percent int, before func() any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && p.left == 0 {
		p.left, p.percent, p.before = n, percent, before
	}
}

// cut makes the power go now, unless it has already.
func (p *power) cut(percent int, before func() any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		p.percent, p.before = percent, before
		p.lose()
	}
}

func (p *power) lost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found != nil
}

func (p *power) operation() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return
	}
	if p.left--; p.left == 0 && p.found == nil {
		p.lose()
	}
}

func (p *power) lose() {
	p.known = p.before()
	p.found = vfs.CrashClone(p.mem, p.percent, p.rng)
}

func (p *power) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &poweredFile{File: f, p: p}, nil
}

func (p *power) Create(name string, c vfs.WriteCategory) (vfs.File, error) {
	p.operation()
	return p.wrap(p.FS.Create(name, c))
}

func (p *power) OpenReadWrite(name string, c vfs.WriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	p.operation()
	return p.wrap(p.FS.OpenReadWrite(name, c, opts...))
}

func (p *power) ReuseForWrite(old, name string, c vfs.WriteCategory) (vfs.File, error) {
	p.operation()
	return p.wrap(p.FS.ReuseForWrite(old, name, c))
}

func (p *power) OpenDir(name string) (vfs.File, error) { return p.wrap(p.FS.OpenDir(name)) }

func (p *power) Rename(from, to string) error {
	p.operation()
	return p.FS.Rename(from, to)
}

func (p *power) Remove(name string) error {
	p.operation()
	return p.FS.Remove(name)
}

func (p *power) Link(from, to string) error {
	p.operation()
	return p.FS.Link(from, to)
}

type poweredFile struct {
	vfs.File
	p *power
}

func (f *poweredFile) Write(b []byte) (int, error) {
	f.p.operation()
	return f.File.Write(b)
}

func (f *poweredFile) WriteAt(b []byte, off int64) (int, error) {
	f.p.operation()
	return f.File.WriteAt(b, off)
}

func (f *poweredFile) Sync() error {
	f.p.operation()
	return f.File.Sync()
}

func (f *poweredFile) SyncData() error {
	f.p.operation()
	return f.File.SyncData()
}

func (f *poweredFile) SyncTo(n int64) (bool, error) {
	f.p.operation()
	return f.File.SyncTo(n)
}
