package expr

import (
	"crypto/md5" //nolint:gosec // the SQL function md5, not security
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// byteFunctions are hashes, and the ways between bytes and text.
var byteFunctions = []Overload{
	{Name: "md5", Args: []column.Type{tText}, Result: tText, Make: kernel(md5Hex)},
	{Name: "md5", Args: []column.Type{tBytea}, Result: tText, Make: kernel(md5Hex)},
	bytesOf("sha224", func(dst, s []byte) []byte { h := sha256.Sum224(s); return append(dst, h[:]...) }),
	bytesOf("sha256", func(dst, s []byte) []byte { h := sha256.Sum256(s); return append(dst, h[:]...) }),
	bytesOf("sha384", func(dst, s []byte) []byte { h := sha512.Sum384(s); return append(dst, h[:]...) }),
	bytesOf("sha512", func(dst, s []byte) []byte { h := sha512.Sum512(s); return append(dst, h[:]...) }),
	{Name: "encode", Args: []column.Type{tBytea, tText}, Result: tText, Make: kernel(encodeBytes)},
	{Name: "decode", Args: []column.Type{tText, tText}, Result: tBytea, Make: kernel(decodeText)},
	{Name: "convert_to", Args: []column.Type{tText, tText}, Result: tBytea, Make: kernel(convertUTF8)},
	{Name: "convert_from", Args: []column.Type{tBytea, tText}, Result: tText, Make: kernel(convertUTF8)},
	{Name: "get_byte", Args: []column.Type{tBytea, tInt4}, Result: tInt4, Make: kernel(getByte)},
}

func bytesOf(name string, f func(dst, s []byte) []byte) Overload {
	o := textOf(name, f)
	o.Args, o.Result = []column.Type{tBytea}, tBytea
	return o
}

func md5Hex(c *Call) {
	a, w := c.Texts(0), c.Text()
	for _, row := range c.Rows() {
		h := md5.Sum(a.At(row))
		w.Buf = hex.AppendEncode(w.Buf, h[:])
		w.End(row)
	}
}

func errEncoding(name []byte) *pgerr.Error {
	return pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized encoding: \"%s\"", name)
}

func encodeBytes(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	for _, row := range c.Rows() {
		s := a.At(row)
		switch strings.ToLower(string(b.At(row))) {
		case "hex":
			w.Buf = hex.AppendEncode(w.Buf, s)
		case "base64":
			for len(s) > 57 { // lines of 76 characters
				w.Buf = append(base64.StdEncoding.AppendEncode(w.Buf, s[:57]), '\n')
				s = s[57:]
			}
			w.Buf = base64.StdEncoding.AppendEncode(w.Buf, s)
			if len(s) == 57 {
				w.Buf = append(w.Buf, '\n')
			}
		case "escape":
			for _, x := range s {
				switch {
				case x == 0 || x >= 0x80:
					w.Buf = append(w.Buf, '\\', '0'+x>>6, '0'+x>>3&7, '0'+x&7)
				case x == '\\':
					w.Buf = append(w.Buf, '\\', '\\')
				default:
					w.Buf = append(w.Buf, x)
				}
			}
		default:
			c.Fail(row, errEncoding(b.At(row)))
			continue
		}
		w.End(row)
	}
}

func decodeText(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	for _, row := range c.Rows() {
		s := a.At(row)
		var err *pgerr.Error
		switch strings.ToLower(string(b.At(row))) {
		case "hex":
			w.Buf, err = appendFromHex(w.Buf, s)
		case "base64":
			w.Buf, err = appendFromBase64(w.Buf, s)
		case "escape":
			w.Buf, err = appendFromEscape(w.Buf, s)
		default:
			err = errEncoding(b.At(row))
		}
		if err != nil {
			w.Drop()
			c.Fail(row, err)
			continue
		}
		w.End(row)
	}
}

func isSpaceByte(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func firstChar(s []byte) []byte {
	_, n := utf8.DecodeRune(s)
	return s[:n]
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func appendFromHex(dst, s []byte) ([]byte, *pgerr.Error) {
	for i := 0; i < len(s); {
		if isSpaceByte(s[i]) {
			i++
			continue
		}
		var x byte
		for k := range 2 {
			if i+k >= len(s) {
				return dst, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
			}
			d, ok := hexDigit(s[i+k])
			if !ok {
				return dst, pgerr.Newf(pgerr.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", firstChar(s[i+k:]))
			}
			x = x<<4 | d
		}
		dst = append(dst, x)
		i += 2
	}
	return dst, nil
}

func appendFromBase64(dst, s []byte) ([]byte, *pgerr.Error) {
	var buf uint32
	pos, end := 0, 0
	for i, c := range s {
		if isSpaceByte(c) {
			continue
		}
		var x byte
		switch {
		case c == '=':
			if end == 0 {
				switch pos {
				case 2:
					end = 1
				case 3:
					end = 2
				default:
					return dst, pgerr.New(pgerr.InvalidParameterValue, "unexpected \"=\" while decoding base64 sequence")
				}
			}
		case c >= 'A' && c <= 'Z':
			x = c - 'A'
		case c >= 'a' && c <= 'z':
			x = c - 'a' + 26
		case c >= '0' && c <= '9':
			x = c - '0' + 52
		case c == '+':
			x = 62
		case c == '/':
			x = 63
		default:
			return dst, pgerr.Newf(pgerr.InvalidParameterValue, "invalid symbol \"%s\" found while decoding base64 sequence", firstChar(s[i:]))
		}
		buf = buf<<6 | uint32(x)
		if pos++; pos == 4 {
			dst = append(dst, byte(buf>>16))
			if end == 0 || end > 1 {
				dst = append(dst, byte(buf>>8))
			}
			if end == 0 || end > 2 {
				dst = append(dst, byte(buf))
			}
			buf, pos = 0, 0
		}
	}
	if pos != 0 {
		return dst, pgerr.New(pgerr.InvalidParameterValue, "invalid base64 end sequence").
			WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
	}
	return dst, nil
}

func appendFromEscape(dst, s []byte) ([]byte, *pgerr.Error) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		octal := func(k int, most byte) bool { return i+k < len(s) && s[i+k] >= '0' && s[i+k] <= most }
		switch {
		case octal(1, '3') && octal(2, '7') && octal(3, '7'):
			dst = append(dst, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
		case i+1 < len(s) && s[i+1] == '\\':
			dst = append(dst, '\\')
			i++
		default:
			return dst, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return dst, nil
}

// convertUTF8 is convert_to and convert_from for the one encoding that text has here.
func convertUTF8(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	for _, row := range c.Rows() {
		name := strings.ReplaceAll(strings.ToLower(string(b.At(row))), "-", "")
		if name != "utf8" && name != "unicode" && name != "sql_ascii" {
			c.Fail(row, pgerr.Unsupported("encoding \"%s\" is not supported: text is UTF8", b.At(row)))
			continue
		}
		if c.Out.Type.Kind == column.Text {
			if err := pgtype.CheckText(a.At(row)); err != nil {
				c.Fail(row, pgerr.From(err))
				continue
			}
		}
		w.Set(row, a.At(row))
	}
}

func getByte(c *Call) {
	out, a, b := c.Out.I32, c.Texts(0), c.Int32s(1)
	for _, row := range c.Rows() {
		s, n := a.At(row), int(b.At(row))
		if n < 0 || n >= len(s) {
			c.Fail(row, pgerr.Newf(pgerr.ArraySubscriptError, "index %d out of valid range, 0..%d", n, len(s)-1))
			continue
		}
		out[row] = int32(s[n])
	}
}
