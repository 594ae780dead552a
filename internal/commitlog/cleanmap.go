package commitlog

import (
	"crypto/sha256"
	"encoding/binary"
)

// keyMap has the last offset of each key, in fixed memory: 24 bytes a key, of which 16 are half of the key's SHA-256. Two keys that nobody can
// find have the same.
type keyMap struct {
	slots []keySlot
	used  int
	most  int
}

type keySlot struct {
	a, b uint64 // the hash
	next int64  // the offset plus one; 0: free
}

const (
	keySlotBytes = 24
	// A table that is fuller than this is slow to search.
	keyMapFullNum, keyMapFullDen = 4, 5
)

// newKeyMap makes a map for at most so many keys, within so many bytes.
func newKeyMap(keys int64, bytes int) *keyMap {
	slots := max(8, min(int64(bytes/keySlotBytes), keys*keyMapFullDen/keyMapFullNum+8))
	return &keyMap{slots: make([]keySlot, slots), most: int(slots * keyMapFullNum / keyMapFullDen)}
}

// find returns the key's slot, or the free one for it.
func (m *keyMap) find(key []byte) (s *keySlot, a, b uint64) {
	sum := sha256.Sum256(key)
	a, b = binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
	for i := a % uint64(len(m.slots)); ; i++ {
		if i == uint64(len(m.slots)) {
			i = 0
		}
		if s = &m.slots[i]; s.next == 0 || s.a == a && s.b == b {
			return s, a, b
		}
	}
}

// put says that the key's last offset is this one; false if the map is full. Offsets come in order.
func (m *keyMap) put(key []byte, offset int64) bool {
	s, a, b := m.find(key)
	if s.next == 0 {
		if m.used == m.most {
			return false
		}
		m.used++
		s.a, s.b = a, b
	}
	s.next = offset + 1
	return true
}

// last returns the key's last offset, -1 if it is not in the map.
func (m *keyMap) last(key []byte) int64 {
	s, _, _ := m.find(key)
	return s.next - 1
}
