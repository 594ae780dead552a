package state

import (
	"bytes"
	"slices"
)

const (
	// lookupReaders is how many read keys of one Probe at once: a row that is on the disk alone costs a round trip, in which others can be fetched.
	// Every worker probes for itself, so more would share the same cores.
	lookupReaders = 2
	// readerKeys is how many keys are worth another reader.
	readerKeys = 64
	// lookupBytes is how much a reader collects before what it has found goes into the table.
	lookupBytes = 256 << 10
	// oneRow says that a key has at most one row, of any size.
	oneRow = 0
)

// lookup is what one reader finds in kv for a run of keys in order. The table's owner alone puts it into the table.
type lookup struct {
	keys  []int32 // positions of the keys
	done  int     // of keys, how many have been read
	found []found
	data  []byte // suffixes and values of the rows found, one after the other
	err   error
}

// found is a row, or the end of a key: rows of a key come before its end, in order of their suffixes.
type found struct {
	kind          foundKind
	key           int32
	suffix, value int32 // lengths in data
}

type foundKind uint8

const (
	foundRow  foundKind = iota
	foundEnd            // all rows of the key have been there
	foundMore           // the key has more rows than may be held; the rest is not read
	foundSame           // a key that is equal to the one that ended before it
)

// lookUp reads the missing keys from kv, sorted and several at once, and calls put for each thing found, key by key; suffix and value are valid until
// put returns. most bounds the bytes that a key's rows may have, or is oneRow.
func (tb *table) lookUp(keys *Keys, most int, put func(f found, suffix, value []byte) error) error {
	slices.SortFunc(tb.missing, func(a, b int32) int { return bytes.Compare(keys.At(int(a)), keys.At(int(b))) })
	present, near := tb.plan(len(tb.missing))
	readers := tb.lookups[:max(1, min(lookupReaders, len(tb.missing)/readerKeys))]
	left := tb.missing
	for k := range readers {
		n := len(left) / (len(readers) - k)
		for n > 0 && n < len(left) && bytes.Equal(keys.At(int(left[n-1])), keys.At(int(left[n]))) {
			n++ // one reader has all that are equal
		}
		readers[k].keys, readers[k].done = left[:n], 0
		left = left[n:]
	}
	for len(readers) > 0 {
		together(len(readers), false, func(k int) { tb.read(&readers[k], keys, most, present, near) })
		for k := range readers {
			if err := readers[k].each(put); err != nil {
				return tb.wrap("read rows", err)
			}
		}
		for len(readers) > 0 && readers[0].done == len(readers[0].keys) {
			readers = readers[1:]
		}
	}
	return nil
}

// read goes on with a run, until it is done or much has been found.
func (tb *table) read(l *lookup, keys *Keys, most int, present, near bool) {
	l.found, l.data, l.err = l.found[:0], l.data[:0], nil
	if l.done == len(l.keys) {
		return
	}
	it, err := tb.db.NewIter(tb.spec.ID, present)
	if err != nil {
		l.err = err
		return
	}
	for l.done < len(l.keys) && len(l.data) < lookupBytes {
		i := l.keys[l.done]
		key := keys.At(int(i))
		if near {
			it.SeekGE(key, nil)
		} else {
			it.SeekGroup(key, nil)
		}
		end := found{kind: foundEnd, key: i}
		for size := 0; it.Next() && (!near || bytes.Equal(it.Prefix(), key)); {
			suffix, value := it.Suffix(), it.Value()
			if size += len(suffix) + len(value); size > most && most != oneRow {
				end.kind = foundMore
				break
			}
			l.data = append(append(l.data, suffix...), value...)
			l.found = append(l.found, found{kind: foundRow, key: i, suffix: int32(len(suffix)), value: int32(len(value))})
			if most == oneRow {
				break
			}
		}
		if it.Err() != nil {
			break
		}
		l.found = append(l.found, end)
		for l.done++; l.done < len(l.keys) && bytes.Equal(key, keys.At(int(l.keys[l.done]))); l.done++ {
			l.found = append(l.found, found{kind: foundSame, key: l.keys[l.done]})
		}
	}
	l.err = it.Close()
}

// each gives what a reader has found to put; what it did not find to the end, because of an error, it leaves out.
func (l *lookup) each(put func(f found, suffix, value []byte) error) error {
	whole := len(l.found)
	if l.err != nil {
		for whole > 0 && l.found[whole-1].kind == foundRow {
			whole--
		}
	}
	data := l.data
	for _, f := range l.found[:whole] {
		suffix, value := data[:f.suffix], data[f.suffix:f.suffix+f.value]
		data = data[f.suffix+f.value:]
		if err := put(f, suffix, value); err != nil {
			return err
		}
	}
	if cap(l.data) > 2*lookupBytes {
		l.data = nil
	}
	if cap(l.found) > 2*lookupBytes/16 {
		l.found = nil
	}
	return l.err
}
