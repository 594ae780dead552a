package jsonrow

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// shape is the members of an object in their order. The next object mostly has the same: then each name is compared with the one that was there, its quotes and
// colon included, and not looked up.
type shape struct {
	members []member
	misses  int // since it was learnt
}

// member is a member's name and the column that it belongs to, -1 if none.
type member struct {
	name   string
	lead   string // the member up to its value, if its name stands for itself and is ASCII; else empty
	column int
}

const (
	maxShape      = 256
	maxShapeName  = 128
	maxMisses     = 4096 // after so many names that were not where the shape has them it is learnt anew
	maxMemberName = 1 << 10
)

var errNotUTF8 = errors.New("the record is not valid UTF-8")

// scan finds the tokens of all columns and checks the whole text.
func (d *Decoder) scan(data []byte) error {
	clear(d.tokens)
	s := scanner{data: data}
	err := d.object(&s)
	// Beyond ASCII there are strings only, if there is no error.
	if (err != nil || s.wide&highs != 0) && !utf8.Valid(data) {
		return errNotUTF8
	}
	return err
}

// object scans a record. What is usual, a member where the last object had it and no spaces, stands here; the scanner does the rest.
func (d *Decoder) object(s *scanner) error {
	data := s.data
	s.space()
	if s.at >= len(data) || data[s.at] != '{' {
		return s.unexpected("an object")
	}
	s.at++
	s.space()
	if s.at < len(data) && data[s.at] == '}' {
		s.at++
		return s.end()
	}
	for at := 0; ; at++ {
		column := -1
		if lead := d.shape.lead(at); lead != "" && len(data)-s.at >= len(lead) && string(data[s.at:s.at+len(lead)]) == lead {
			s.at += len(lead)
			column = d.shape.members[at].column
		} else {
			name, err := s.name()
			if err != nil {
				return err
			}
			column = d.column(data, name, at)
		}
		value, err := s.usual()
		if err != nil {
			return err
		}
		if column >= 0 {
			d.tokens[column] = value
		}
		if s.at < len(data) && data[s.at] == ',' {
			s.at++
			continue
		}
		if more, err := s.next('}'); err != nil {
			return err
		} else if !more {
			return s.end()
		}
	}
}

// lead is what the member at a place begins with, empty if that is not known.
func (s *shape) lead(at int) string {
	if at < len(s.members) {
		return s.members[at].lead
	}
	return ""
}

// column finds the column of the member at a place, -1 if there is none, and remembers it for the next object.
func (d *Decoder) column(data []byte, name token, at int) int {
	n := data[name.from:name.to]
	if name.kind == escapedText {
		if len(n) > maxMemberName {
			return -1
		}
		d.scratch, _ = appendUnescaped(d.scratch[:0], n)
		n = d.scratch
	}
	sh := &d.shape
	if at < len(sh.members) && sh.members[at].name == string(n) {
		return sh.members[at].column
	}
	column, ok := d.byName[string(n)]
	if !ok {
		column = -1
	}
	switch {
	case at == len(sh.members) && at < maxShape && len(n) <= maxShapeName:
		m := member{name: string(n), column: column}
		if plainName(n) {
			m.lead = `"` + m.name + `":`
		}
		sh.members = append(sh.members, m)
	case at < len(sh.members):
		if sh.misses++; sh.misses > maxMisses {
			sh.members, sh.misses = sh.members[:0], 0
		}
	}
	return column
}

// plainName tells whether a name is ASCII and stands for itself between quotes.
func plainName(name []byte) bool {
	return bytes.IndexFunc(name, func(r rune) bool { return r < ' ' || r >= utf8.RuneSelf || r == '"' || r == '\\' }) < 0
}
