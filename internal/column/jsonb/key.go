package jsonb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/leat-io/leat/internal/decimal"
)

// Tags of the key form, in the order of values. An empty array at the top is below every scalar, as in PostgreSQL, where it
// is an accident that its indexes made permanent.
const (
	tagEmptyTop = 0x08
	tagNull     = 0x10
	tagString   = 0x20
	tagNumber   = 0x30
	tagFalse    = 0x40
	tagTrue     = 0x41
	tagArray    = 0x50
	tagObject   = 0x60
)

var errKey = errors.New("jsonb: malformed key")

// Compare orders two canonical values as PostgreSQL does (strings by bytes). Numbers are equal when their values are.
func Compare(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	if ea, eb := emptyArray(a), emptyArray(b); ea || eb {
		if KindOf(a) < Array || KindOf(b) < Array {
			if ea {
				return -1
			}
			return 1
		}
	}
	return compare(a, b)
}

func emptyArray(v []byte) bool { return len(v) == 2 && v[0] == '[' }

func compare(a, b []byte) int {
	ka, kb := KindOf(a), KindOf(b)
	if ka != kb {
		return int(ka) - int(kb)
	}
	switch ka {
	case String:
		return compareStrings(a, b)
	case Number:
		x, _ := decimal.ParseBytes(a)
		y, _ := decimal.ParseBytes(b)
		return x.Cmp(y)
	case Bool:
		return len(b) - len(a) // false is longer than true
	case Array, Object:
		if d := Len(a) - Len(b); d != 0 {
			return d
		}
		ia, ib := Members(a), Members(b)
		for {
			k, v, ok := ia.Next()
			l, w, ok2 := ib.Next()
			if !ok || !ok2 {
				return 0
			}
			if ka == Object {
				if c := compareStrings(k, l); c != 0 {
					return c
				}
			}
			if c := compare(v, w); c != 0 {
				return c
			}
		}
	}
	return 0
}

func compareStrings(a, b []byte) int {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 && len(a) > 1 && len(b) > 1 {
		return bytes.Compare(a[1:len(a)-1], b[1:len(b)-1])
	}
	return bytes.Compare(AppendString(nil, a), AppendString(nil, b))
}

// AppendKey appends a form of a canonical value whose order as bytes is Compare's. Equal values have equal bytes: the scale of
// numbers is lost. It delimits itself.
func AppendKey(dst, v []byte) []byte {
	if emptyArray(v) {
		return append(dst, tagEmptyTop)
	}
	return appendKey(dst, v)
}

func appendKey(dst, v []byte) []byte {
	switch k := KindOf(v); k {
	case Null:
		return append(dst, tagNull)
	case Bool:
		if v[0] == 't' {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case String:
		return appendKeyString(append(dst, tagString), v)
	case Number:
		d, _ := decimal.ParseBytes(v)
		return d.AppendKey(append(dst, tagNumber))
	default:
		tag := byte(tagArray)
		if k == Object {
			tag = tagObject
		}
		dst = append(dst, tag, 0, 0, 0, 0)
		at, n := len(dst), uint32(0)
		for it := Members(v); ; n++ {
			key, m, ok := it.Next()
			if !ok {
				break
			}
			if k == Object {
				dst = appendKeyString(dst, key)
			}
			dst = appendKey(dst, m)
		}
		binary.BigEndian.PutUint32(dst[at-4:], n)
		return dst
	}
}

// appendKeyString appends a string's content and 0: jsonb has no character 0.
func appendKeyString(dst, s []byte) []byte { return append(AppendString(dst, s), 0) }

// KeySize is how many bytes the key form at the start of src takes.
func KeySize(src []byte) (int, error) {
	if len(src) > 0 && src[0] == tagEmptyTop {
		return 1, nil
	}
	return keySize(src, 0)
}

func keySize(src []byte, depth int) (int, error) {
	if len(src) == 0 || depth > MaxDepth {
		return 0, errKey
	}
	switch tag := src[0]; tag {
	case tagNull, tagFalse, tagTrue:
		return 1, nil
	case tagString:
		n := bytes.IndexByte(src, 0)
		if n < 0 {
			return 0, errKey
		}
		return n + 1, nil
	case tagNumber:
		n, err := decimal.KeySize(src[1:])
		return n + 1, err
	case tagArray, tagObject:
		if len(src) < 5 {
			return 0, errKey
		}
		count, at := binary.BigEndian.Uint32(src[1:]), 5
		if count > math.MaxInt32 {
			return 0, errKey
		}
		for ; count > 0; count-- {
			if tag == tagObject {
				n := bytes.IndexByte(src[at:], 0)
				if n < 0 {
					return 0, errKey
				}
				at += n + 1
			}
			n, err := keySize(src[at:], depth+1)
			if err != nil {
				return 0, err
			}
			at += n
		}
		return at, nil
	}
	return 0, errKey
}

// DecodeKey appends the canonical text of the key form at the start of src, and returns how many bytes it took.
func DecodeKey(dst, src []byte) ([]byte, int, error) {
	if len(src) > 0 && src[0] == tagEmptyTop {
		return append(dst, "[]"...), 1, nil
	}
	return decodeKey(dst, src, 0)
}

func decodeKey(dst, src []byte, depth int) ([]byte, int, error) {
	if len(src) == 0 || depth > MaxDepth {
		return dst, 0, errKey
	}
	switch tag := src[0]; tag {
	case tagNull:
		return append(dst, "null"...), 1, nil
	case tagFalse:
		return append(dst, "false"...), 1, nil
	case tagTrue:
		return append(dst, "true"...), 1, nil
	case tagString:
		n := bytes.IndexByte(src, 0)
		if n < 0 {
			return dst, 0, errKey
		}
		return AppendQuoted(dst, src[1:n]), n + 1, nil
	case tagNumber:
		d, n, err := decimal.DecodeKey(src[1:])
		if err != nil || !d.IsFinite() {
			return dst, 0, errKey
		}
		return d.Append(dst), n + 1, nil
	case tagArray, tagObject:
		if len(src) < 5 {
			return dst, 0, errKey
		}
		count, at := binary.BigEndian.Uint32(src[1:]), 5
		open, end := byte('['), byte(']')
		if tag == tagObject {
			open, end = '{', '}'
		}
		dst = append(dst, open)
		for i := range count {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			if tag == tagObject {
				n := bytes.IndexByte(src[at:], 0)
				if n < 0 {
					return dst, 0, errKey
				}
				dst = append(AppendQuoted(dst, src[at:at+n]), ": "...)
				at += n + 1
			}
			var n int
			var err error
			if dst, n, err = decodeKey(dst, src[at:], depth+1); err != nil {
				return dst, 0, err
			}
			at += n
		}
		return append(dst, end), at, nil
	}
	return dst, 0, errKey
}
