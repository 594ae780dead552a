package expr

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// stringFunctions count and change characters: in UTF-8, with shorter loops for text that is all ASCII. Upper and lower case are
// Unicode's simple mappings, as PostgreSQL has them with a UTF-8 locale.
var stringFunctions = []Overload{
	charLength("length"), charLength("char_length"), charLength("character_length"),
	lengthOf("length", tBytea, byteCount),
	lengthOf("octet_length", tText, byteCount), lengthOf("octet_length", tBytea, byteCount),
	lengthOf("bit_length", tText, bitCount), lengthOf("bit_length", tBytea, bitCount),
	lengthOf("ascii", tText, codePoint),
	caseOf("lower", 'A', appendLower), caseOf("upper", 'a', appendUpper), textOf("initcap", appendInitcap), textOf("reverse", appendReverse),
	trims("btrim", trimLeft|trimRight), trims("ltrim", trimLeft), trims("rtrim", trimRight),
	trimsSet("btrim", tText, trimLeft|trimRight), trimsSet("ltrim", tText, trimLeft), trimsSet("rtrim", tText, trimRight),
	trimsSet("btrim", tBytea, trimLeft|trimRight), trimsSet("ltrim", tBytea, trimLeft), trimsSet("rtrim", tBytea, trimRight),
	{Name: "replace", Args: []column.Type{tText, tText, tText}, Result: tText, Make: kernel(replaceText)},
	{Name: "translate", Args: []column.Type{tText, tText, tText}, Result: tText, Make: kernel(translateText)},
	{Name: "repeat", Args: []column.Type{tText, tInt4}, Result: tText, Make: kernel(repeatText)},
	{Name: "lpad", Args: []column.Type{tText, tInt4}, Result: tText, Make: kernel(func(c *Call) { padText(c, true) })},
	{Name: "lpad", Args: []column.Type{tText, tInt4, tText}, Result: tText, Make: kernel(func(c *Call) { padText(c, true) })},
	{Name: "rpad", Args: []column.Type{tText, tInt4}, Result: tText, Make: kernel(func(c *Call) { padText(c, false) })},
	{Name: "rpad", Args: []column.Type{tText, tInt4, tText}, Result: tText, Make: kernel(func(c *Call) { padText(c, false) })},
	{Name: "chr", Args: []column.Type{tInt4}, Result: tText, Make: kernel(chrText)},
	{Name: "to_hex", Args: []column.Type{tInt4}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Int32s(0), c.Text()
		for _, row := range c.Rows() {
			w.Buf = appendHexNumber(w.Buf, uint64(uint32(a.At(row))))
			w.End(row)
		}
	})},
	{Name: "to_hex", Args: []column.Type{tInt8}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Int64s(0), c.Text()
		for _, row := range c.Rows() {
			w.Buf = appendHexNumber(w.Buf, uint64(a.At(row)))
			w.End(row)
		}
	})},
}

// kernel is a maker for kernels that need nothing of the site.
func kernel(k Kernel) func(*Site) (Kernel, error) {
	return func(*Site) (Kernel, error) { return k, nil }
}

func lengthOf(name string, t column.Type, f func([]byte) int) Overload {
	return Overload{Name: name, Args: []column.Type{t}, Result: tInt4, Make: kernel(func(c *Call) {
		out, a := c.Out.I32, c.Texts(0)
		for _, row := range c.Rows() {
			out[row] = int32(f(a.At(row)))
		}
	})}
}

// charLength counts characters. Text is mostly ASCII, which is seen for all rows at once.
func charLength(name string) Overload {
	return Overload{Name: name, Args: []column.Type{tText}, Result: tInt4, Make: kernel(func(c *Call) {
		out, a := c.Out.I32, c.Texts(0)
		if all, ok := c.allBytes(a); ok && isASCII(all) {
			off := a.off[:len(out)+1]
			for i := range out {
				out[i] = int32(off[i+1] - off[i])
			}
			return
		}
		for _, row := range c.Rows() {
			out[row] = int32(charCount(a.At(row)))
		}
	})}
}

// caseOf is lower or upper: first is the first of the 26 letters that change. Text that is all ASCII is changed for all rows at once.
func caseOf(name string, first byte, f func(dst, s []byte) []byte) Overload {
	return Overload{Name: name, Args: []column.Type{tText}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Texts(0), c.Text()
		if all, ok := c.allBytes(a); ok && isASCII(all) && c.Text().Room(len(all)) {
			w.Buf = appendOtherCase(w.Buf, all, first)
			w.likeFirst()
			return
		}
		for _, row := range c.Rows() {
			w.Buf = f(w.Buf, a.At(row))
			w.End(row)
		}
	})}
}

// appendOtherCase changes the case of the 26 letters from first on, eight bytes at a time. s is ASCII.
func appendOtherCase(dst, s []byte, first byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, len(s))[:at+len(s)]
	out := dst[at:]
	from, behind := (0x80-uint64(first))*ones, (0x80-uint64(first)-26)*ones
	for len(s) >= 8 {
		x := binary.LittleEndian.Uint64(s)
		letters := (x + from) &^ (x + behind) & highs
		binary.LittleEndian.PutUint64(out, x^letters>>2)
		s, out = s[8:], out[8:]
	}
	for i, c := range s {
		if c-first < 26 {
			c ^= 'a' - 'A'
		}
		out[i] = c
	}
	return dst
}

// textOf is a function of one text that cannot fail.
func textOf(name string, f func(dst, s []byte) []byte) Overload {
	return Overload{Name: name, Args: []column.Type{tText}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			w.Buf = f(w.Buf, a.At(row))
			w.End(row)
		}
	})}
}

// charCount is how many characters valid UTF-8 has: its bytes but those that go on a character (10xxxxxx), counted eight at a time.
func charCount(s []byte) int {
	n := len(s)
	for len(s) >= 8 {
		w := binary.LittleEndian.Uint64(s)
		n -= bits.OnesCount64(w & ^(w << 1) & highs)
		s = s[8:]
	}
	for _, c := range s {
		if c&0xc0 == 0x80 {
			n--
		}
	}
	return n
}

func byteCount(s []byte) int { return len(s) }
func bitCount(s []byte) int  { return len(s) * 8 }

func codePoint(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	r, _ := utf8.DecodeRune(s)
	return int(r)
}

// isASCII tells whether every byte is one character.
func isASCII(s []byte) bool {
	for ; len(s) >= 32; s = s[32:] {
		a, b := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])
		c, d := binary.LittleEndian.Uint64(s[16:]), binary.LittleEndian.Uint64(s[24:])
		if (a|b|c|d)&highs != 0 {
			return false
		}
	}
	for ; len(s) >= 8; s = s[8:] {
		if binary.LittleEndian.Uint64(s)&highs != 0 {
			return false
		}
	}
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// charOffset is where character n (from 0) starts; len(s) when there are not so many.
func charOffset(s []byte, n int) int {
	if n >= len(s) {
		return len(s)
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, k := utf8.DecodeRune(s[i:])
		i += k
	}
	return i
}

func appendLower(dst, s []byte) []byte {
	for i, c := range s {
		switch {
		case c >= utf8.RuneSelf:
			return appendMapped(dst, s[i:], unicode.ToLower)
		case c-'A' < 26:
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func appendUpper(dst, s []byte) []byte {
	for i, c := range s {
		switch {
		case c >= utf8.RuneSelf:
			return appendMapped(dst, s[i:], unicode.ToUpper)
		case c-'a' < 26:
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func appendMapped(dst, s []byte, f func(rune) rune) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		dst = utf8.AppendRune(dst, f(r))
		s = s[n:]
	}
	return dst
}

// appendInitcap makes the first character of every run of letters and digits upper case, and the others lower case.
func appendInitcap(dst, s []byte) []byte {
	inside := false
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if inside {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		} else {
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		}
		inside = unicode.IsLetter(r) || unicode.IsDigit(r)
		s = s[n:]
	}
	return dst
}

func appendReverse(dst, s []byte) []byte {
	for len(s) > 0 {
		_, n := utf8.DecodeLastRune(s)
		dst = append(dst, s[len(s)-n:]...)
		s = s[:len(s)-n]
	}
	return dst
}

const (
	trimLeft = 1 << iota
	trimRight
)

func trims(name string, sides int) Overload {
	return Overload{Name: name, Args: []column.Type{tText}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			s := a.At(row)
			for sides&trimLeft != 0 && len(s) > 0 && s[0] == ' ' {
				s = s[1:]
			}
			for sides&trimRight != 0 && len(s) > 0 && s[len(s)-1] == ' ' {
				s = s[:len(s)-1]
			}
			w.Set(row, s)
		}
	})}
}

func trimsSet(name string, t column.Type, sides int) Overload {
	wide := t.Kind == column.Text
	return Overload{Name: name, Args: []column.Type{t, t}, Result: t, Make: kernel(func(c *Call) {
		a, b, w := c.Texts(0), c.Texts(1), c.Text()
		for _, row := range c.Rows() {
			w.Set(row, trimSet(a.At(row), b.At(row), sides, wide))
		}
	})}
}

// trimSet cuts the characters (or bytes) of a set off the ends.
func trimSet(s, set []byte, sides int, wide bool) []byte {
	if sides&trimLeft != 0 {
		for len(s) > 0 {
			n := 1
			if wide {
				_, n = utf8.DecodeRune(s)
			}
			if !bytes.Contains(set, s[:n]) {
				break
			}
			s = s[n:]
		}
	}
	if sides&trimRight != 0 {
		for len(s) > 0 {
			n := 1
			if wide {
				_, n = utf8.DecodeLastRune(s)
			}
			if !bytes.Contains(set, s[len(s)-n:]) {
				break
			}
			s = s[:len(s)-n]
		}
	}
	return s
}

func replaceText(c *Call) {
	a, b, d, w := c.Texts(0), c.Texts(1), c.Texts(2), c.Text()
	if c.Const[1] && c.Const[2] && len(b.At(0)) == 1 && len(d.At(0)) == 0 {
		drop := b.At(0)[0]
		for _, row := range c.Rows() {
			i := int(row) & a.mask
			w.Buf = appendWithout(w.Buf, a.data, int(a.off[i]), int(a.off[i+1]), drop)
			w.End(row)
		}
		return
	}
rows:
	for _, row := range c.Rows() {
		s, from, to := a.At(row), b.At(row), d.At(row)
		if len(from) > 0 {
			for {
				i := bytes.Index(s, from)
				if i < 0 {
					break
				}
				w.Buf = append(append(w.Buf, s[:i]...), to...)
				s = s[i+len(from):]
				if w.full() {
					w.Refuse(row)
					continue rows
				}
			}
		}
		w.Set(row, s)
	}
}

// appendWithout appends the bytes of data from one place to another, without one byte, eight at a time: a word that has it once, or not at all, takes
// no branch. Where data goes on, the last word is one, too.
func appendWithout(dst, data []byte, from, to int, drop byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, to-from+8)
	dst = dst[:cap(dst)] // whole words are written
	for ; from < to && from+8 <= len(data); from += 8 {
		x := binary.LittleEndian.Uint64(data[from:])
		y := x ^ uint64(drop)*ones
		found := (y - ones) &^ y & highs // the lowest one is exact
		kept := 8
		if left := to - from; left < 8 {
			found &= 1<<(8*left) - 1
			kept = left
		}
		if found&(found-1) != 0 {
			for _, c := range data[from : from+kept] {
				dst[at] = c
				at += asInt(c != drop)
			}
			continue
		}
		before := (found & -found >> 7) - 1 // the bytes before the first one; all, if there is none
		binary.LittleEndian.PutUint64(dst[at:], x&before|x>>8&^before)
		at += kept - asInt(found != 0)
	}
	for ; from < to; from++ {
		dst[at] = data[from]
		at += asInt(data[from] != drop)
	}
	return dst[:at]
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

var (
	errNullCharacter = pgerr.New(pgerr.ProgramLimitExceeded, "null character not permitted")
	errNegativeChar  = pgerr.New(pgerr.InvalidParameterValue, "character number must be positive")
)

// translateText changes characters of one list into those at the same places of another, and drops those that have none.
func translateText(c *Call) {
	a, b, d, w := c.Texts(0), c.Texts(1), c.Texts(2), c.Text()
	for _, row := range c.Rows() {
		s, from, to := a.At(row), b.At(row), d.At(row)
		if isASCII(from) && isASCII(to) {
			for _, x := range s {
				i := bytes.IndexByte(from, x)
				switch {
				case i < 0:
					w.Buf = append(w.Buf, x)
				case i < len(to):
					w.Buf = append(w.Buf, to[i])
				}
			}
			w.End(row)
			continue
		}
		for len(s) > 0 {
			_, n := utf8.DecodeRune(s)
			k := 0
			rest := from
			for ; len(rest) > 0; k++ {
				_, m := utf8.DecodeRune(rest)
				if bytes.Equal(rest[:m], s[:n]) {
					break
				}
				rest = rest[m:]
			}
			if len(rest) == 0 {
				w.Buf = append(w.Buf, s[:n]...)
			} else if at := charOffset(to, k); at < len(to) {
				_, m := utf8.DecodeRune(to[at:])
				w.Buf = append(w.Buf, to[at:at+m]...)
			}
			s = s[n:]
		}
		w.End(row)
	}
}

func repeatText(c *Call) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	for _, row := range c.Rows() {
		s, n := a.At(row), max(int(b.At(row)), 0)
		if !w.Room(len(s) * n) {
			w.Refuse(row)
			continue
		}
		from, size := len(w.Buf), len(s)*n
		w.Buf = slices.Grow(w.Buf, size)
		w.Buf = append(w.Buf, s[:min(len(s), size)]...)
		for have := len(s); have > 0 && have < size; have = len(w.Buf) - from { // twice as much each time
			w.Buf = append(w.Buf, w.Buf[from:from+min(have, size-have)]...)
		}
		w.End(row)
	}
}

// padText fills text up to so many characters, or cuts it to that.
func padText(c *Call, left bool) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	fills := TextCol{off: []uint32{0, 1}, data: []byte{' '}}
	if len(c.Args) == 3 {
		fills = c.Texts(2)
	}
	for _, row := range c.Rows() {
		s, want, fill := a.At(row), max(int(b.At(row)), 0), fills.At(row)
		have := charCount(s)
		if want <= have || len(fill) == 0 {
			w.Set(row, s[:charOffset(s, want)])
			continue
		}
		if !w.Room(len(s) + (want-have)*min(len(fill), utf8.UTFMax)) {
			w.Refuse(row)
			continue
		}
		if !left {
			w.Buf = append(w.Buf, s...)
		}
		per := charCount(fill)
		missing := want - have
		for ; missing >= per; missing -= per {
			w.Buf = append(w.Buf, fill...)
		}
		w.Buf = append(w.Buf, fill[:charOffset(fill, missing)]...)
		if left {
			w.Buf = append(w.Buf, s...)
		}
		w.End(row)
	}
}

func chrText(c *Call) {
	a, w := c.Int32s(0), c.Text()
	for _, row := range c.Rows() {
		switch r := a.At(row); {
		case r < 0:
			c.Fail(row, errNegativeChar)
		case r == 0:
			c.Fail(row, errNullCharacter)
		case r > utf8.MaxRune:
			c.Fail(row, pgerr.Newf(pgerr.ProgramLimitExceeded, "requested character too large for encoding: %d", r))
		case !utf8.ValidRune(r):
			c.Fail(row, pgerr.Newf(pgerr.ProgramLimitExceeded, "requested character not valid for encoding: %d", r))
		default:
			w.Buf = utf8.AppendRune(w.Buf, r)
			w.End(row)
		}
	}
}

func appendHexNumber(dst []byte, x uint64) []byte {
	var b [16]byte
	i := len(b)
	for {
		i--
		b[i] = "0123456789abcdef"[x&15]
		if x >>= 4; x == 0 {
			return append(dst, b[i:]...)
		}
	}
}
