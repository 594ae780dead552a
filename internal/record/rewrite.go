package record

import "encoding/binary"

// Rewriter copies batches without some of their records, as compaction does: offsets, timestamps, headers, producer and sequence stay, and so
// does the codec. It keeps its buffers from batch to batch; it is not safe for concurrent use. The zero Rewriter is ready to use.
type Rewriter struct {
	r       Reader
	batch   []byte
	plain   []byte // the records, decompressed
	at      int    // where the current record begins in plain
	kept    []keptRange
	count   int32
	largest int64 // timestamp
	records []byte
	c       compressor
}

// keptRange is a run of records in plain that stay.
type keptRange struct{ from, to int }

// Reset starts on a whole batch whose checksum was verified. The batch must stay unchanged until AppendTo.
func (w *Rewriter) Reset(batch []byte) error {
	w.batch, w.kept, w.count, w.at = batch, w.kept[:0], 0, 0
	if err := w.r.Reset(batch); err != nil {
		return err
	}
	w.plain = w.r.rest
	return nil
}

// Next moves to the next record; false at the end or at an error, see Err.
func (w *Rewriter) Next() bool {
	w.at = len(w.plain) - len(w.r.rest)
	return w.r.Next()
}

// Err says why Next ended early; nil at the regular end.
func (w *Rewriter) Err() error { return w.r.Err() }

// Record is the current record.
func (w *Rewriter) Record() *Record { return &w.r.rec }

// Keep says that the current record stays.
func (w *Rewriter) Keep() {
	end := len(w.plain) - len(w.r.rest)
	if n := len(w.kept); n > 0 && w.kept[n-1].to == w.at {
		w.kept[n-1].to = end
	} else {
		w.kept = append(w.kept, keptRange{w.at, end})
	}
	if w.count == 0 || w.r.rec.Timestamp > w.largest {
		w.largest = w.r.rec.Timestamp
	}
	w.count++
}

// Kept is how many records stay so far.
func (w *Rewriter) Kept() int { return int(w.count) }

// Close gives large buffers up; the Rewriter may be Reset again.
func (w *Rewriter) Close() {
	w.r.Close()
	w.batch, w.plain = nil, nil
	if cap(w.records) > keepBytes {
		w.records = nil
	}
	if cap(w.kept) > keepBytes/16 {
		w.kept = nil
	}
}

// NoHorizon leaves the delete horizon as it is.
const NoHorizon = int64(-1)

// AppendTo appends the batch with the records that stay, at most those it had, to dst. A horizon other than NoHorizon is set as the delete horizon.
// A batch that all records leave is appended as a header without records, which keeps its offsets and sequences.
func (w *Rewriter) AppendTo(dst []byte, horizon int64) []byte {
	h := &w.r.h
	if w.count == h.Count && horizon == NoHorizon {
		return append(dst, w.batch...)
	}
	if w.count == 0 {
		return AppendEmpty(dst, w.batch)
	}
	w.records = w.records[:0]
	for _, k := range w.kept {
		if horizon == NoHorizon {
			w.records = append(w.records, w.plain[k.from:k.to]...)
		} else {
			w.records = w.rebase(w.records, w.plain[k.from:k.to], horizon)
		}
	}
	from := len(dst)
	dst = append(dst, w.batch[:HeaderLen]...)
	dst = w.c.compress(dst, h.Codec(), w.records)
	b := dst[from:]
	be := binary.BigEndian
	if horizon != NoHorizon {
		be.PutUint16(b[21:], uint16(h.Attributes)|attrDeleteHorizon)
		be.PutUint64(b[27:], uint64(horizon))
	}
	if !h.LogAppendTime() {
		be.PutUint64(b[35:], uint64(w.largest))
	}
	be.PutUint32(b[57:], uint32(w.count))
	seal(b)
	return dst
}

// seal writes length and checksum.
func seal(b []byte) {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-overhead))
	binary.BigEndian.PutUint32(b[17:], Checksum(b))
}

// rebase appends records with their timestamps relative to another base. They were walked before, so they are well formed.
func (w *Rewriter) rebase(dst, records []byte, base int64) []byte {
	h := &w.r.h
	for len(records) > 0 {
		n, k := binary.Varint(records)
		r := records[k : k+int(n)]
		records = records[k+int(n):]
		delta, k := binary.Varint(r[1:])
		ms := h.BaseTimestamp + delta
		if h.LogAppendTime() {
			ms = h.MaxTimestamp
		}
		rest := r[1+k:]
		dst = binary.AppendVarint(dst, int64(1+varintLen(ms-base)+len(rest)))
		dst = append(dst, r[0])
		dst = binary.AppendVarint(dst, ms-base)
		dst = append(dst, rest...)
	}
	return dst
}

// AppendEmpty appends the header of a batch without its records: what is left of one whose offsets, or whose producer's sequence, must stay known.
func AppendEmpty(dst, batch []byte) []byte {
	from := len(dst)
	dst = append(dst, batch[:HeaderLen]...)
	b := dst[from:]
	be := binary.BigEndian
	be.PutUint16(b[21:], be.Uint16(b[21:])&^(attrCodec|attrDeleteHorizon))
	copy(b[27:35], b[35:43]) // the base timestamp may have been a horizon
	be.PutUint32(b[57:], 0)
	seal(b)
	return dst
}
