package kafka

import (
	"encoding/binary"
	"errors"
)

// wire reads the primitives of the protocol from a frame. The first malformed one sets bad; all reads after it return zero. Nothing is copied.
type wire struct {
	src []byte
	bad bool
}

var errWire = errors.New("the request ends early, or a length in it is impossible")

func (w *wire) take(n int) []byte {
	if w.bad || n < 0 || n > len(w.src) {
		w.bad = true
		return nil
	}
	out := w.src[:n:n]
	w.src = w.src[n:]
	return out
}

func (w *wire) int16() int16 {
	if b := w.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (w *wire) int32() int32 {
	if b := w.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (w *wire) uvarint() uint64 {
	n, size := binary.Uvarint(w.src)
	if w.bad || size <= 0 || size > 5 {
		w.bad = true
		return 0
	}
	w.src = w.src[size:]
	return n
}

// length reads a length; -1 is null.
func (w *wire) length(compact bool, wide bool) int {
	switch {
	case compact:
		return int(w.uvarint()) - 1
	case wide:
		return int(w.int32())
	}
	return int(w.int16())
}

// bytes reads a byte string with a length of four bytes, or a varint when compact; nil is null.
func (w *wire) bytes(compact bool) []byte {
	if n := w.length(compact, true); n >= 0 {
		return w.take(n)
	}
	return nil
}

// string reads a string, whose length has two bytes unless compact. null reports that there is none.
func (w *wire) string(compact bool) (s []byte, null bool) {
	n := w.length(compact, false)
	if n < 0 {
		return nil, true
	}
	return w.take(n), false
}

// array reads the number of elements of an array, each of at least elem bytes: a number that cannot fit what is left is refused.
func (w *wire) array(compact bool, elem int) int {
	n := w.length(compact, true)
	if w.bad || n < 0 {
		return 0
	}
	if n > len(w.src)/elem {
		w.bad = true
		return 0
	}
	return n
}

// tags skips the tagged fields of a flexible version.
func (w *wire) tags(flexible bool) {
	if !flexible {
		return
	}
	for n := w.uvarint(); n > 0 && !w.bad; n-- {
		w.uvarint()
		w.take(int(min(w.uvarint(), 1<<31)))
	}
}

func skipTags(src []byte) ([]byte, error) {
	w := wire{src: src}
	w.tags(true)
	if w.bad {
		return nil, errWire
	}
	return w.src, nil
}
