package expr

import (
	"strings"
	"unicode/utf8"
)

// template is a parsed format of to_char, to_timestamp and to_date.
type template []templateNode

// templateNode is a field, or text that stands for itself.
type templateNode struct {
	field  string // as it is written: "YYYY", "Mon"; "" for text
	name   string // the field in upper case
	text   string // one character
	space  bool   // text that is white space
	sep    bool   // text that is punctuation
	fm, tm bool
	th     bool
	upper  bool // TH rather than th
}

// templateFields are the fields of dates and times in the order in which they are looked for. Other spellings than these and
// their lower case are text; of names, the case of the field is the case of the result.
var templateFields = func() []string {
	upper := strings.Fields("A.D. A.M. AD AM B.C. BC CC DAY DDD DD DY Day Dy D FF1 FF2 FF3 FF4 FF5 FF6 FX HH24 HH12 HH IDDD ID IW IYYY IYY IY I J MI MM " +
		"MONTH MON MS Month Mon OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W Y,YYY YYYY YYY YY Y")
	lower := strings.Fields("a.d. a.m. ad am b.c. bc cc day ddd dd dy d ff1 ff2 ff3 ff4 ff5 ff6 fx hh24 hh12 hh iddd id iw iyyy iyy iy i j mi mm month mon ms of " +
		"p.m. pm q rm sssss ssss ss tzh tzm tz us ww w y,yyy yyyy yyy yy y")
	return append(upper, lower...)
}()

func parseTemplate(f string) template {
	var t template
	for f != "" {
		var n templateNode
		for {
			if p, ok := cutEither(f, "FM", "fm"); ok {
				n.fm, f = true, p
			} else if p, ok := cutEither(f, "TM", "tm"); ok {
				n.tm, f = true, p
			} else {
				break
			}
		}
		found := false
		for _, name := range templateFields {
			if strings.HasPrefix(f, name) {
				n.field, n.name, f, found = name, strings.ToUpper(name), f[len(name):], true
				break
			}
		}
		if found {
			for {
				if rest, ok := strings.CutPrefix(f, "TH"); ok {
					n.th, n.upper, f = true, true, rest
				} else if rest, ok := strings.CutPrefix(f, "th"); ok {
					n.th, f = true, rest
				} else if rest, ok := strings.CutPrefix(f, "SP"); ok {
					f = rest
				} else {
					break
				}
			}
			t = append(t, n)
			continue
		}
		if f == "" {
			break
		}
		if f[0] == '"' {
			f = f[1:]
			for f != "" && f[0] != '"' {
				if f[0] == '\\' && len(f) > 1 {
					f = f[1:]
				}
				k := charLen(f)
				t = append(t, templateNode{text: f[:k]})
				f = f[k:]
			}
			if f != "" {
				f = f[1:]
			}
			continue
		}
		if f[0] == '\\' && len(f) > 1 && f[1] == '"' {
			f = f[1:]
		}
		k := charLen(f)
		c := f[0]
		t = append(t, templateNode{text: f[:k], space: isSpaceByte(c) || c == '\v' || c == '\f', sep: isSeparator(c)})
		f = f[k:]
	}
	return t
}

func charLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func cutEither(s, a, b string) (string, bool) {
	if r, ok := strings.CutPrefix(s, a); ok {
		return r, true
	}
	return strings.CutPrefix(s, b)
}

// isSeparator tells printable ASCII that is neither letter nor digit.
func isSeparator(c byte) bool {
	return c > ' ' && c < 127 && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
}

// digits tells whether a field's input is digits.
func (n *templateNode) digits() bool {
	switch n.name {
	case "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "DAY", "DY", "FX", "MONTH", "MON", "OF", "P.M.", "PM", "RM", "TZH", "TZ":
		return false
	}
	return true
}

// templates are parsed formats: the last, and a bounded number of earlier ones.
type templates struct {
	byText map[string]template
}

func (t *templates) of(f []byte) template {
	if x, ok := t.byText[string(f)]; ok {
		return x
	}
	if t.byText == nil || len(t.byText) >= maxPatterns {
		t.byText = map[string]template{}
	}
	x := parseTemplate(string(f))
	t.byText[string(f)] = x
	return x
}
