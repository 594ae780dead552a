package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A batch travels in the journal as an entry of kind KindBatch:
//
//	offset  size  what
//	     0     1  version of this layout: 1
//	     1     1  flags
//	     2     2  zero
//	     4    16  topic id
//	    20     4  partition, big endian
//	    24     …  the record batch; its first eight bytes are the base offset
//
// Base offset and leader epoch inside the batch are filled in when the unit is ordered.
const (
	payloadVersion = 1
	payloadHeader  = 24
)

const (
	flagVoid   = 1 << iota // refused when it was ordered: not there
	flagAtomic             // one of several batches that are seen all or none
	flagLast               // the last of these in its unit
)

func putPayloadHeader(dst []byte, flags byte, id TopicID, partition int32) {
	dst[0], dst[1], dst[2], dst[3] = payloadVersion, flags, 0, 0
	copy(dst[4:20], id[:])
	binary.BigEndian.PutUint32(dst[20:], uint32(partition))
}

var errPayload = errors.New("a batch entry of the journal is malformed")

func parsePayload(src []byte) (flags byte, id TopicID, partition int32, batch []byte, err error) {
	if len(src) < payloadHeader {
		return 0, id, 0, nil, fmt.Errorf("%w: %d bytes", errPayload, len(src))
	}
	if src[0] != payloadVersion {
		return 0, id, 0, nil, fmt.Errorf("%w: version %d, this binary reads version %d", errPayload, src[0], payloadVersion)
	}
	copy(id[:], src[4:20])
	return src[1], id, int32(binary.BigEndian.Uint32(src[20:])), src[payloadHeader:], nil
}
