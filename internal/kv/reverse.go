package kv

import "bytes"

// SeekGroupBefore moves to just behind the group's last row with a suffix < before (nil: behind all of the group); Prev then
// yields that group's rows from there backwards.
func (i *Iter) SeekGroupBefore(prefix, before []byte) {
	if before != nil {
		i.key = AppendKey(i.key[:0], i.table, prefix, before)
	} else {
		// The first prefix behind this one is this one and a zero.
		i.key = AppendKey(i.key[:0], i.table, prefix, nil)
		i.key = append(i.key, 0)
	}
	i.group = append(i.group[:0], prefix...)
	i.valid = i.it.SeekLT(i.key)
	i.began, i.seeked = true, true
}

// Prev moves to the previous row of the group, after SeekGroupBefore. Not to be mixed with Next.
func (i *Iter) Prev() bool {
	if i.seeked {
		i.seeked = false
	} else if i.valid {
		i.valid = i.it.Prev()
	}
	if i.valid && !bytes.Equal(i.Prefix(), i.group) {
		i.valid = false
	}
	return i.valid
}
