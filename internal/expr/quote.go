package expr

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// quoteFunctions write SQL: quoting, and format().
var quoteFunctions = []Overload{
	textOf("quote_ident", appendIdent),
	textOf("quote_literal", appendLiteral),
	{Name: "quote_literal", Args: []column.Type{tElement}, Result: tText, Volatility: Zoned, Make: kernel(quoteAny)},
	{Name: "quote_nullable", Args: []column.Type{tText}, Result: tText, CallsOnNull: true, Make: kernel(quoteAny)},
	{Name: "quote_nullable", Args: []column.Type{tElement}, Result: tText, CallsOnNull: true, Volatility: Zoned, Make: kernel(quoteAny)},
	{Name: "format", Args: []column.Type{tText}, Result: tText, CallsOnNull: true, Make: makeFormat},
	{Name: "format", Args: []column.Type{tText, tAny}, Variadic: true, Result: tText, CallsOnNull: true, Volatility: Zoned, Make: makeFormat},
}

// quotedWords are the key words that PostgreSQL quotes as identifiers: all but the unreserved ones.
var quotedWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
		between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout int integer
		interval least national nchar none normalize nullif numeric out overlay position precision real row setof smallint
		substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
		xmlparse xmlpi xmlroot xmlserialize xmltable
		authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left like natural
		notnull outer overlaps right similar tablesample verbose
		all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create current_catalog
		current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end except
		false fetch for foreign from grant group having in initially intersect into lateral leading limit localtime
		localtimestamp not null offset on only or order placing primary references returning select session_user some symmetric
		table then to trailing true union unique user using variadic when where window with`) {
		m[w] = true
	}
	return m
}()

// appendIdent quotes an identifier if it must be.
func appendIdent(dst, s []byte) []byte {
	safe := len(s) > 0 && (s[0] >= 'a' && s[0] <= 'z' || s[0] == '_')
	for _, c := range s {
		safe = safe && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
	}
	if safe && !quotedWords[string(s)] {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for _, c := range s {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

func appendLiteral(dst, s []byte) []byte {
	escape := bytes.IndexByte(s, '\\') >= 0
	if escape {
		dst = append(dst, 'E')
	}
	dst = append(dst, '\'')
	for _, c := range s {
		if c == '\'' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, '\'')
}

func quoteAny(c *Call) {
	w := c.Text()
	var text []byte
	for _, row := range c.Rows() {
		if c.IsNull(0, row) {
			w.Buf = append(w.Buf, "NULL"...)
		} else {
			text = c.appendWord(text[:0], 0, row)
			w.Buf = appendLiteral(w.Buf, text)
		}
		w.End(row)
	}
}

// appendWord appends argument k as a cast to text shows it.
func (c *Call) appendWord(dst []byte, k int, row int32) []byte {
	if c.Args[k].Type.Kind == column.Bool {
		if c.Bools(k).At(row) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	}
	return c.appendOut(dst, k, row)
}

var (
	errFormatEnd  = pgerr.New(pgerr.InvalidParameterValue, "unterminated format() type specifier").WithHint("For a single \"%%\" use \"%%%%\".")
	errFormatArgs = pgerr.New(pgerr.InvalidParameterValue, "too few arguments for format()")
	errFormatZero = pgerr.New(pgerr.InvalidParameterValue, "format specifies argument 0, but arguments are numbered from 1")
	errFormatPos  = pgerr.New(pgerr.InvalidParameterValue, "width argument position must be ended by \"$\"")
	errFormatBig  = pgerr.New(pgerr.NumericValueOutOfRange, "number is out of range")
	errFormatNull = pgerr.New(pgerr.NullValueNotAllowed, "null values cannot be formatted as an SQL identifier")
)

func makeFormat(*Site) (Kernel, error) {
	var text, quoted []byte
	return func(c *Call) {
		f, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			if c.IsNull(0, row) {
				c.Null(row)
				continue
			}
			var err *pgerr.Error
			if text, quoted, err = c.format(f.At(row), row, text, quoted); err != nil {
				w.Drop()
				c.Fail(row, err)
				continue
			}
			w.End(row)
		}
	}, nil
}

// format writes one row. text and quoted are scratch.
func (c *Call) format(f []byte, row int32, text, quoted []byte) ([]byte, []byte, *pgerr.Error) {
	w := c.Text()
	next := 1
	for i := 0; i < len(f); i++ {
		if w.full() {
			return text, quoted, w.why
		}
		if f[i] != '%' {
			w.Buf = append(w.Buf, f[i])
			continue
		}
		if i++; i == len(f) {
			return text, quoted, errFormatEnd
		}
		if f[i] == '%' {
			w.Buf = append(w.Buf, '%')
			continue
		}
		arg, width, left := -1, 0, false
		number := func() (n int, ok bool, err *pgerr.Error) {
			for i < len(f) && f[i] >= '0' && f[i] <= '9' {
				if n = n*10 + int(f[i]-'0'); n > 1<<31-1 {
					return 0, false, errFormatBig
				}
				ok = true
				i++
			}
			if i == len(f) {
				return 0, false, errFormatEnd
			}
			return n, ok, nil
		}
		n, ok, err := number()
		if err != nil {
			return text, quoted, err
		}
		widthKnown := false
		if ok {
			if f[i] == '$' {
				if n == 0 {
					return text, quoted, errFormatZero
				}
				arg = n
				if i++; i == len(f) {
					return text, quoted, errFormatEnd
				}
			} else {
				width, widthKnown = n, true
			}
		}
		if !widthKnown {
			for f[i] == '-' {
				left = true
				if i++; i == len(f) {
					return text, quoted, errFormatEnd
				}
			}
			if f[i] == '*' {
				if i++; i == len(f) {
					return text, quoted, errFormatEnd
				}
				n, ok, err := number()
				if err != nil {
					return text, quoted, err
				}
				at := next
				if ok {
					if f[i] != '$' {
						return text, quoted, errFormatPos
					}
					if n == 0 {
						return text, quoted, errFormatZero
					}
					at = n
					if i++; i == len(f) {
						return text, quoted, errFormatEnd
					}
				}
				next = at + 1
				if at >= len(c.Args) {
					return text, quoted, errFormatArgs
				}
				if !c.IsNull(at, row) {
					text = c.appendWord(text[:0], at, row)
					v, bad := parseOne(tInt4, string(text), c.Ctx)
					if bad != nil {
						return text, quoted, bad
					}
					width = int(v.I32[0])
				}
			} else {
				n, ok, err := number()
				if err != nil {
					return text, quoted, err
				}
				if ok {
					width = n
				}
			}
		}
		kind := f[i]
		if kind != 's' && kind != 'I' && kind != 'L' {
			return text, quoted, pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized format() type specifier \"%s\"", firstChar(f[i:])).
				WithHint("For a single \"%%\" use \"%%%%\".")
		}
		if arg < 0 {
			arg = next
		}
		next = arg + 1
		if arg >= len(c.Args) {
			return text, quoted, errFormatArgs
		}
		if width < 0 {
			left, width = true, -width
		}
		if !w.Room(width) {
			return text, quoted, w.why
		}
		quoted = quoted[:0]
		if c.IsNull(arg, row) {
			switch kind {
			case 'I':
				return text, quoted, errFormatNull
			case 'L':
				quoted = append(quoted, "NULL"...)
			}
		} else {
			text = c.appendOut(text[:0], arg, row)
			switch kind {
			case 'I':
				quoted = appendIdent(quoted, text)
			case 'L':
				quoted = appendLiteral(quoted, text)
			default:
				quoted = append(quoted, text...)
			}
		}
		fill := width - utf8.RuneCount(quoted)
		if !left {
			w.Buf = appendSpaces(w.Buf, fill)
		}
		w.Buf = append(w.Buf, quoted...)
		if left {
			w.Buf = appendSpaces(w.Buf, fill)
		}
	}
	return text, quoted, nil
}

func appendSpaces(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}
