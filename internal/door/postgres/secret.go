package postgres

import "encoding/binary"

// secretBytes and secretOf are the cancel key as protocol 3.0 has it: four bytes.
func secretBytes(secret uint32) []byte { return binary.BigEndian.AppendUint32(nil, secret) }

func secretOf(key []byte) uint32 {
	if len(key) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(key)
}
