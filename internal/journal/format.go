package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The bytes of a segment file; docs/format/journal.md draws them.
const (
	formatVersion = 1

	// segmentHeaderBytes is where fragments begin: two copies of the header, a block each.
	segmentHeaderBytes  = 8192
	headerCopyBytes     = 64
	fragmentHeaderBytes = 32
	fragmentMagic       = 0x314d464c // "LFM1"

	typeWhole byte = 1 // a unit
	typeBody  byte = 2 // a part of a large unit's payloads, beyond their heads
	typeFinal byte = 3 // the entries of a large unit with the heads of their payloads: the unit exists

	checkpointName = "CHECKPOINT"
)

var (
	segmentMagic    = [8]byte{'L', 'E', 'A', 'T', 'J', 'R', 'N', 'L'}
	checkpointMagic = [8]byte{'L', 'E', 'A', 'T', 'J', 'C', 'K', 'P'}
	castagnoli      = crc32.MakeTable(crc32.Castagnoli)
	le              = binary.LittleEndian
)

// segmentHeader is at the start of every segment that has been used.
type segmentHeader struct {
	seq     uint64 // of the segment; strictly increasing over the life of the folder
	bytes   uint64 // of the file
	prevEnd uint64 // where the fragments of the segment before end, all of them durable before this header was written
	nextLSN LSN    // of the next unit when the header was written
	salt    uint64 // of the checksums of the fragments in this use of the file
}

func (h *segmentHeader) encode(dst []byte) {
	clear(dst[:segmentHeaderBytes])
	for _, at := range []int{0, segmentHeaderBytes / 2} {
		b := dst[at : at+headerCopyBytes]
		copy(b, segmentMagic[:])
		le.PutUint32(b[8:], formatVersion)
		le.PutUint64(b[16:], h.seq)
		le.PutUint64(b[24:], h.bytes)
		le.PutUint64(b[32:], h.prevEnd)
		le.PutUint64(b[40:], uint64(h.nextLSN))
		le.PutUint64(b[48:], h.salt)
		le.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	}
}

// decodeSegmentHeader returns ok false for a segment that was never used. Either copy of the header will do.
func decodeSegmentHeader(file string, b []byte) (h segmentHeader, ok bool, err error) {
	used := false
	for _, at := range []int{0, segmentHeaderBytes / 2} {
		if len(b) < at+headerCopyBytes {
			break
		}
		c := b[at : at+headerCopyBytes]
		if [8]byte(c[:8]) != segmentMagic || crc32.Checksum(c[16:], castagnoli) != le.Uint32(c[12:]) {
			used = used || [headerCopyBytes]byte(c) != [headerCopyBytes]byte{}
			continue
		}
		if v := le.Uint32(c[8:]); v != formatVersion {
			return h, false, fmt.Errorf("%w: %s has version %d, this binary reads version %d (use the version of the program that wrote the folder)", ErrFormat, file, v, formatVersion)
		}
		return segmentHeader{
			seq: le.Uint64(c[16:]), bytes: le.Uint64(c[24:]), prevEnd: le.Uint64(c[32:]), nextLSN: LSN(le.Uint64(c[40:])),
			salt: le.Uint64(c[48:]),
		}, true, nil
	}
	if used {
		return h, false, &DamageError{File: file, Reason: "both copies of its header are not readable"}
	}
	return h, false, nil
}

// fragment is the unit of writing. It starts at a multiple of 8. The checksum covers where it stands and the segment's salt, so
// that what the file held in an earlier use, or before a crash that lost its header, is never taken for a fragment of this use.
type fragment struct {
	typ    byte
	lsn    LSN    // whole and final
	synced uint32 // up to this byte the segment was durable when the fragment was written
	stream uint32 // which large unit a body or final is of
	length int    // of the payload
}

// fragmentSize is what a fragment with n bytes of payload takes.
func fragmentSize(n int) int { return (fragmentHeaderBytes + n + 7) &^ 7 }

func fragmentChecksum(b []byte, salt uint64, offset int64) uint32 {
	var place [16]byte
	le.PutUint64(place[:], salt)
	le.PutUint64(place[8:], uint64(offset))
	crc := crc32.Update(0, castagnoli, place[:])
	return crc32.Update(crc, castagnoli, b[8:])
}

// seal writes the header in front of the payload; b is header and payload, without the padding.
func (f *fragment) seal(b []byte, salt uint64, offset int64) {
	le.PutUint32(b, fragmentMagic)
	le.PutUint32(b[8:], uint32(len(b)-fragmentHeaderBytes))
	le.PutUint32(b[12:], uint32(f.typ))
	le.PutUint64(b[16:], uint64(f.lsn))
	le.PutUint32(b[24:], f.synced)
	le.PutUint32(b[28:], f.stream)
	le.PutUint32(b[4:], fragmentChecksum(b, salt, offset))
}

// parseFragment reads the fragment at offset of the segment's bytes; ok is false if there is none.
func parseFragment(seg []byte, salt uint64, offset int64) (f fragment, payload []byte, ok bool) {
	if offset+fragmentHeaderBytes > int64(len(seg)) {
		return f, nil, false
	}
	b := seg[offset:]
	if le.Uint32(b) != fragmentMagic {
		return f, nil, false
	}
	n := int64(le.Uint32(b[8:]))
	if n > int64(len(b))-fragmentHeaderBytes {
		return f, nil, false
	}
	b = b[:fragmentHeaderBytes+n]
	if fragmentChecksum(b, salt, offset) != le.Uint32(b[4:]) {
		return f, nil, false
	}
	f = fragment{
		typ: byte(le.Uint32(b[12:])), lsn: LSN(le.Uint64(b[16:])), synced: le.Uint32(b[24:]), stream: le.Uint32(b[28:]), length: int(n),
	}
	if f.typ < typeWhole || f.typ > typeFinal {
		return f, nil, false
	}
	return f, b[fragmentHeaderBytes:], true
}

// checkpoint is what the file of that name says.
type checkpoint struct {
	lsn      LSN    // units before it are elsewhere
	firstSeq uint64 // segments before it are free
	endSeq   uint64 // the journal is known to be durable up to endOff of segment endSeq
	endOff   uint64
}

const checkpointBytes = 48

func (c *checkpoint) encode() []byte {
	b := make([]byte, checkpointBytes)
	copy(b, checkpointMagic[:])
	le.PutUint32(b[8:], formatVersion)
	le.PutUint64(b[16:], uint64(c.lsn))
	le.PutUint64(b[24:], c.firstSeq)
	le.PutUint64(b[32:], c.endSeq)
	le.PutUint64(b[40:], c.endOff)
	le.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	return b
}

func decodeCheckpoint(file string, b []byte) (c checkpoint, err error) {
	if len(b) < 12 || [8]byte(b[:8]) != checkpointMagic {
		return c, &DamageError{File: file, Reason: "it is not a journal checkpoint"}
	}
	if v := le.Uint32(b[8:]); v != formatVersion {
		return c, fmt.Errorf("%w: %s has version %d, this binary reads version %d (use the version of the program that wrote the folder)", ErrFormat, file, v, formatVersion)
	}
	if len(b) != checkpointBytes || crc32.Checksum(b[16:], castagnoli) != le.Uint32(b[12:]) {
		return c, &DamageError{File: file, Reason: "its checksum does not match"}
	}
	return checkpoint{
		lsn: LSN(le.Uint64(b[16:])), firstSeq: le.Uint64(b[24:]), endSeq: le.Uint64(b[32:]), endOff: le.Uint64(b[40:]),
	}, nil
}
