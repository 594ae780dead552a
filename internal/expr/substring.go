package expr

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// substringFunctions cut text and bytes by position and find one in the other. Positions count from 1.
var substringFunctions = func() []Overload {
	var out []Overload
	for _, t := range []column.Type{tText, tBytea} {
		wide := t.Kind == column.Text
		for _, name := range []string{"substring", "substr"} {
			out = append(out,
				Overload{Name: name, Args: []column.Type{t, tInt4}, Result: t, Make: kernel(func(c *Call) { substring(c, wide) })},
				Overload{Name: name, Args: []column.Type{t, tInt4, tInt4}, Result: t, Make: kernel(func(c *Call) { substring(c, wide) })},
			)
		}
		out = append(out,
			Overload{Name: "overlay", Args: []column.Type{t, t, tInt4}, Result: t, Make: kernel(func(c *Call) { overlay(c, wide) })},
			Overload{Name: "overlay", Args: []column.Type{t, t, tInt4, tInt4}, Result: t, Make: kernel(func(c *Call) { overlay(c, wide) })},
			Overload{Name: "position", Args: []column.Type{t, t}, Result: tInt4, Make: kernel(func(c *Call) { position1(c, wide) })},
		)
	}
	return append(out,
		Overload{Name: "strpos", Args: []column.Type{tText, tText}, Result: tInt4, Make: kernel(func(c *Call) { position1(c, true) })},
		Overload{Name: "left", Args: []column.Type{tText, tInt4}, Result: tText, Make: kernel(leftText)},
		Overload{Name: "right", Args: []column.Type{tText, tInt4}, Result: tText, Make: kernel(rightText)},
		Overload{Name: "starts_with", Args: []column.Type{tText, tText}, Result: tBool, Make: kernel(startsWith)},
		Overload{Name: "^@", Args: []column.Type{tText, tText}, Result: tBool, Make: kernel(startsWith)},
		Overload{Name: "split_part", Args: []column.Type{tText, tText, tInt4}, Result: tText, Make: kernel(splitPart)},
	)
}()

var (
	errNegativeLength = pgerr.New(pgerr.SubstringError, "negative substring length not allowed")
	errZeroField      = pgerr.New(pgerr.InvalidParameterValue, "field position must not be zero")
)

// cut is the part of s from position start, of so many characters (or bytes); of the parts before position 1 there is nothing.
func cut(s []byte, start, length int, wide bool) []byte {
	end := start + length
	if end <= 1 {
		return nil
	}
	start = max(start, 1)
	if !wide || isASCII(s) {
		if start > len(s) {
			return nil
		}
		return s[start-1 : min(end-1, len(s))]
	}
	s = s[charOffset(s, start-1):]
	return s[:charOffset(s, end-start)]
}

func substring(c *Call, wide bool) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	if len(c.Args) == 2 {
		for _, row := range c.Rows() {
			w.Set(row, cut(a.At(row), int(b.At(row)), 2*math.MaxInt32+2, wide))
		}
		return
	}
	d := c.Int32s(2)
	for _, row := range c.Rows() {
		start, length := int(b.At(row)), int(d.At(row))
		switch {
		case length < 0:
			c.Fail(row, errNegativeLength)
			continue
		case start+length > math.MaxInt32:
			length = 2*math.MaxInt32 + 2
		}
		w.Set(row, cut(a.At(row), start, length, wide))
	}
}

func overlay(c *Call, wide bool) {
	a, b, d, w := c.Texts(0), c.Texts(1), c.Int32s(2), c.Text()
	for _, row := range c.Rows() {
		s, repl, start := a.At(row), b.At(row), int(d.At(row))
		length := len(repl)
		if len(c.Args) == 4 {
			length = int(c.Int32s(3).At(row))
		} else if wide {
			length = charCount(repl)
		}
		switch {
		case start <= 0:
			c.Fail(row, errNegativeLength)
			continue
		case start+length > math.MaxInt32 || start+length < math.MinInt32:
			c.Fail(row, errInt4Range)
			continue
		}
		w.Buf = append(w.Buf, cut(s, 1, start-1, wide)...)
		w.Buf = append(w.Buf, repl...)
		w.Buf = append(w.Buf, cut(s, start+length, 2*math.MaxInt32+2, wide)...)
		w.End(row)
	}
}

func position1(c *Call, wide bool) {
	out, a, b := c.Out.I32, c.Texts(0), c.Texts(1)
	for _, row := range c.Rows() {
		s := a.At(row)
		i := bytes.Index(s, b.At(row))
		if i > 0 && wide {
			i = utf8.RuneCount(s[:i])
		}
		out[row] = int32(i + 1)
	}
}

// leftText gives the first n characters, or all but the last -n.
func leftText(c *Call) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	for _, row := range c.Rows() {
		s, n := a.At(row), int(b.At(row))
		if n < 0 {
			n = max(charCount(s)+n, 0)
		}
		w.Set(row, s[:charOffset(s, n)])
	}
}

// rightText gives the last n characters, or all but the first -n.
func rightText(c *Call) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	for _, row := range c.Rows() {
		s, n := a.At(row), int(b.At(row))
		switch {
		case n == math.MinInt32: // whose negation overflows in PostgreSQL, which then cuts nothing off
			n = 0
		case n < 0:
			n = -n
		default:
			n = max(charCount(s)-n, 0)
		}
		w.Set(row, s[charOffset(s, n):])
	}
}

func startsWith(c *Call) {
	out, a, b := c.Out.Bools, c.Texts(0), c.Texts(1)
	for _, row := range c.Rows() {
		out[row] = bytes.HasPrefix(a.At(row), b.At(row))
	}
}

func splitPart(c *Call) {
	a, b, d, w := c.Texts(0), c.Texts(1), c.Int32s(2), c.Text()
	for _, row := range c.Rows() {
		n := int(d.At(row))
		if n == 0 {
			c.Fail(row, errZeroField)
			continue
		}
		w.Set(row, field(a.At(row), b.At(row), n))
	}
}

// field is part n of s between separators, from the end when n is negative.
func field(s, sep []byte, n int) []byte {
	if len(sep) == 0 {
		if n == 1 || n == -1 {
			return s
		}
		return nil
	}
	if n > 0 && len(sep) == 1 {
		return byteField(s, sep[0], n)
	}
	if n > 0 {
		for ; n > 1; n-- {
			i := indexSep(s, sep)
			if i < 0 {
				return nil
			}
			s = s[i+len(sep):]
		}
		if i := indexSep(s, sep); i >= 0 {
			return s[:i]
		}
		return s
	}
	// From the end: separators are found from the start, as overlapping ones are, so count them first.
	parts := 1
	for rest := s; ; parts++ {
		i := indexSep(rest, sep)
		if i < 0 {
			break
		}
		rest = rest[i+len(sep):]
	}
	if n += parts + 1; n < 1 {
		return nil
	}
	return field(s, sep, n)
}

// byteField is field n, from 1, of a text with one-byte separators: they are counted eight bytes at a time.
func byteField(s []byte, sep byte, n int) []byte {
	const (
		lows  = 0x7f7f7f7f7f7f7f7f
		highs = 0x8080808080808080
	)
	every := uint64(sep) * 0x0101010101010101
	start, at := 0, 0 // start: of field n, once n is 1
	for ; at+8 <= len(s); at += 8 {
		w := binary.LittleEndian.Uint64(s[at:]) ^ every
		found := ^((w&lows + lows) | w) & highs // the high bit of each byte that is a separator
		for ; found != 0; found &= found - 1 {
			i := at + bits.TrailingZeros64(found)/8
			if n == 1 {
				return s[start:i]
			}
			n--
			start = i + 1
		}
	}
	for ; at < len(s); at++ {
		if s[at] == sep {
			if n == 1 {
				return s[start:at]
			}
			n--
			start = at + 1
		}
	}
	if n == 1 {
		return s[start:]
	}
	return nil
}

func indexSep(s, sep []byte) int {
	if len(sep) == 1 {
		return bytes.IndexByte(s, sep[0])
	}
	return bytes.Index(s, sep)
}
