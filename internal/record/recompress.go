package record

import (
	"encoding/binary"
	"sync"
)

// recompressor is what Recompress uses again.
type recompressor struct {
	r Reader
	c compressor
}

var recompressors = sync.Pool{New: func() any { return new(recompressor) }}

// Recompress returns a copy of a whole batch with its records compressed by another codec. Its checksum must have been verified.
func Recompress(batch []byte, codec Codec) ([]byte, error) {
	w := recompressors.Get().(*recompressor)
	defer func() {
		w.r.Close()
		recompressors.Put(w)
	}()
	if err := w.r.Reset(batch); err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(batch)), batch[:HeaderLen]...)
	out = w.c.compress(out, codec, w.r.rest)
	binary.BigEndian.PutUint16(out[21:], uint16(w.r.h.Attributes)&^attrCodec|uint16(codec))
	seal(out)
	return out, nil
}
