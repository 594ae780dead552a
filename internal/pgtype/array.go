package pgtype

import (
	"bytes"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// parseArray reads an array literal such as {a,"b c",NULL}, nested for more dimensions, and appends it to v.
func parseArray(v *column.Vector, text []byte, ctx *Context) error {
	p := arrayParser{text: text, s: text, elems: column.NewVector(v.Type.ElemType(), 8), ctx: ctx}
	if err := p.bounds(); err != nil {
		return err
	}
	p.space()
	if len(p.s) == 0 || p.s[0] != '{' {
		return p.malformed("Array value must start with \"{\" or dimension information.")
	}
	if err := p.level(0); err != nil {
		return err
	}
	p.space()
	if len(p.s) > 0 {
		return p.malformed("Junk after closing right brace.")
	}
	dims := p.dims[:max(p.depth, 0)]
	if p.elems.Len == 0 {
		dims = nil
	}
	if p.given > 0 {
		if len(dims) != p.given {
			return p.malformed("Specified array dimensions do not match array contents.")
		}
		for i := range dims {
			if dims[i].Len != p.bound[i].Len {
				return p.malformed("Specified array dimensions do not match array contents.")
			}
			dims[i].Lower = p.bound[i].Lower
		}
	}
	v.Data = column.AppendArrayDims(v.Data, dims, p.elems)
	v.EndBytes()
	return nil
}

type arrayParser struct {
	text, s []byte
	elems   *column.Vector
	ctx     *Context
	dims    [column.MaxArrayDims]column.Dim
	depth   int // dimensions, once the first element is reached
	known   [column.MaxArrayDims]bool
	bound   [column.MaxArrayDims]column.Dim
	given   int
	item    []byte
}

func (p *arrayParser) malformed(detail string) error {
	return pgerr.Newf(pgerr.InvalidTextRepresentation, "malformed array literal: \"%s\"", shown(p.text)).WithDetail("%s", detail)
}

func (p *arrayParser) space() {
	for len(p.s) > 0 && isSpace(p.s[0]) {
		p.s = p.s[1:]
	}
}

// bounds reads [l:u]...= in front.
func (p *arrayParser) bounds() error {
	p.space()
	for len(p.s) > 0 && p.s[0] == '[' {
		end := bytes.IndexByte(p.s, ']')
		if end < 0 || p.given == column.MaxArrayDims {
			return p.malformed("\"[\" must introduce explicitly-specified array dimensions.")
		}
		low, high, found := bytes.Cut(p.s[1:end], []byte(":"))
		l := int32(1)
		var err error
		if found {
			if l, err = ParseInt32(low); err != nil {
				return p.malformed("Missing array dimension value.")
			}
		} else {
			high = low
		}
		u, err := ParseInt32(high)
		if err != nil {
			return p.malformed("Missing array dimension value.")
		}
		if u < l {
			return pgerr.New(pgerr.ArraySubscriptError, "upper bound cannot be less than lower bound")
		}
		p.bound[p.given] = column.Dim{Len: int(int64(u) - int64(l) + 1), Lower: int(l)}
		p.given++
		p.s = p.s[end+1:]
		p.space()
		if len(p.s) > 0 && p.s[0] == '=' {
			p.s = p.s[1:]
			return nil
		}
	}
	if p.given > 0 {
		return p.malformed("Missing \"=\" after array dimensions.")
	}
	return nil
}

// level reads { ... } at a nesting level.
func (p *arrayParser) level(level int) error {
	if level >= column.MaxArrayDims {
		return pgerr.Newf(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", level+1, column.MaxArrayDims)
	}
	p.s = p.s[1:]
	n := 0
	for {
		p.space()
		if len(p.s) == 0 {
			return p.malformed("Unexpected end of input.")
		}
		switch c := p.s[0]; {
		case c == '}' && n == 0 && level > 0:
			return p.malformed("Unexpected \"}\" character.")
		case c == '}' && n == 0:
			p.s = p.s[1:]
			return p.close(level, n)
		case c == '{':
			if p.depth != 0 && level+1 >= p.depth {
				return p.malformed("Unexpected \"{\" character.")
			}
			if err := p.level(level + 1); err != nil {
				return err
			}
		default:
			if p.depth == 0 {
				p.depth = level + 1
			}
			if level+1 != p.depth {
				return p.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			if err := p.element(); err != nil {
				return err
			}
		}
		n++
		p.space()
		if len(p.s) == 0 {
			return p.malformed("Unexpected end of input.")
		}
		c := p.s[0]
		p.s = p.s[1:]
		switch c {
		case ',':
			p.space()
			if len(p.s) > 0 && p.s[0] == '}' {
				return p.malformed("Unexpected \"}\" character.")
			}
		case '}':
			return p.close(level, n)
		default:
			return p.malformed("Unexpected array element.")
		}
	}
}

func (p *arrayParser) close(level, n int) error {
	if p.known[level] && p.dims[level].Len != n {
		return p.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	p.known[level] = true
	p.dims[level] = column.Dim{Len: n, Lower: 1}
	return nil
}

// element reads one element, quoted or not.
func (p *arrayParser) element() error {
	p.item = p.item[:0]
	if p.s[0] == '"' {
		i := 1
		for {
			if i >= len(p.s) {
				return p.malformed("Unexpected end of input.")
			}
			c := p.s[i]
			if c == '"' {
				break
			}
			if c == '\\' {
				i++
				if i >= len(p.s) {
					return p.malformed("Unexpected end of input.")
				}
				c = p.s[i]
			}
			p.item = append(p.item, c)
			i++
		}
		p.s = p.s[i+1:]
		return ParseText(p.elems, p.item, p.ctx)
	}
	i, keep, escaped := 0, 0, false
	for ; i < len(p.s) && p.s[i] != ',' && p.s[i] != '}'; i++ {
		c := p.s[i]
		switch {
		case c == '{':
			return p.malformed("Unexpected \"{\" character.")
		case c == '"':
			return p.malformed("Unexpected array element.")
		case c == '\\':
			i++
			if i >= len(p.s) {
				return p.malformed("Unexpected end of input.")
			}
			c = p.s[i]
			escaped = true
			p.item = append(p.item, c)
			keep = len(p.item)
			continue
		}
		p.item = append(p.item, c)
		if !isSpace(c) {
			keep = len(p.item)
		}
	}
	p.s = p.s[i:]
	p.item = p.item[:keep]
	if len(p.item) == 0 {
		if len(p.s) == 0 {
			return p.malformed("Unexpected end of input.")
		}
		return p.malformed("Unexpected \"" + string(p.s[0]) + "\" character.")
	}
	if !escaped && len(p.item) == 4 && bytes.EqualFold(p.item, []byte("null")) {
		p.elems.AppendNull()
		return nil
	}
	return ParseText(p.elems, p.item, p.ctx)
}
