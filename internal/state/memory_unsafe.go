package state

import "unsafe"

// This file is where addresses become memory. Blocks start at multiples of 8 bytes, so every header is aligned; the pool's
// regions keep the memory alive (mapped, or a slice that the collector does not scan).

// base is where a region starts.
type base struct{ ptr unsafe.Pointer }

func baseOf(mem []byte) base { return base{unsafe.Pointer(unsafe.SliceData(mem))} }

func (p *pool) at(addr uint32) unsafe.Pointer {
	return unsafe.Add(p.bases[addr>>regionUnits].ptr, int(addr&unitMask)<<unitShift)
}

// bytes are the n bytes from the start of the block plus off on.
func (p *pool) bytes(addr uint32, off, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(p.at(addr), off)), n)
}

// words are the first n words of the block.
func (p *pool) words(addr uint32, n int) []uint64 {
	return unsafe.Slice((*uint64)(p.at(addr)), n)
}

// refs are the first n addresses in the block.
func (p *pool) refs(addr uint32, n int) []uint32 {
	return unsafe.Slice((*uint32)(p.at(addr)), n)
}

// link is the word at the start of a free block.
func (p *pool) link(addr uint32) *uint32 { return (*uint32)(p.at(addr)) }

func (p *pool) row(addr uint32) *row { return (*row)(p.at(addr)) }

func (p *pool) group(addr uint32) *group { return (*group)(p.at(addr)) }

// keyAt is the key of the row or group at addr: its length is the first word of both headers.
func (p *pool) keyAt(addr uint32, header int) []byte {
	at := p.at(addr)
	return unsafe.Slice((*byte)(unsafe.Add(at, header)), int(*(*uint32)(at)))
}

func (p *pool) leafDir(addr uint32, n int) []leaf {
	return unsafe.Slice((*leaf)(p.at(addr)), n)
}
