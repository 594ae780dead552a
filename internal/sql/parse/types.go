package parse

import (
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// typeName takes a type, with its array bounds.
func (p *parser) typeName() ast.TypeName {
	from := p.tok.from
	setOf := p.accept("setof")
	t := p.simpleType(false)
	t.SetOf = setOf
	if p.accept("array") {
		t.Dims = 1
		if p.acceptPunct("[") {
			p.arrayBound()
			p.expectPunct("]")
		}
	} else {
		for p.acceptPunct("[") {
			if t.Dims++; t.Dims > 6 {
				p.failAt(pgerr.ProgramLimitExceeded, from, "number of array dimensions exceeds the maximum allowed (6)")
			}
			if !p.tok.punct("]") {
				p.arrayBound()
			}
			p.expectPunct("]")
		}
	}
	t.Span = p.span(from)
	return t
}

// arrayBound takes the length in text[3], which means nothing, as in PostgreSQL.
func (p *parser) arrayBound() {
	if !p.tok.integer() {
		p.unexpected("an integer")
	}
	p.advance()
}

// typeWords are the words that begin a type with a syntax of its own.
var typeWords = map[string]string{
	"int": "int4", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4", "boolean": "bool",
	"decimal": "numeric", "dec": "numeric", "numeric": "numeric", "float": "float8", "bit": "bit",
	"char": "bpchar", "character": "bpchar", "nchar": "bpchar", "national": "bpchar", "varchar": "varchar",
	"time": "time", "timestamp": "timestamp", "interval": "interval",
}

// simpleType takes a type without array bounds. In a literal, such as char 'abc', a missing length means any length.
func (p *parser) simpleType(literal bool) (t ast.TypeName) {
	from := p.tok.from
	defer func() { t.Span = p.span(from) }()
	if p.isSeq("double", "precision") {
		p.acceptSeq("double", "precision")
		t.Name = "float8"
		return t
	}
	name, special := typeWords[p.tok.text]
	if p.tok.kind != tokWord || !special {
		return p.genericType()
	}
	word := p.advance().text
	t.Name = name
	switch word {
	case "float":
		if p.tok.punct("(") {
			at := p.tok.from
			switch n := p.precision(); {
			case n < 1:
				p.failAt(pgerr.InvalidParameterValue, at, "precision for type float must be at least 1 bit")
			case n > 53:
				p.failAt(pgerr.InvalidParameterValue, at, "precision for type float must be less than 54 bits")
			case n <= 24:
				t.Name = "float4"
			}
		}
	case "decimal", "dec", "numeric":
		t.Mods = p.modifiers()
	case "bit":
		if p.accept("varying") {
			t.Name = "varbit"
		}
		t.Mods = p.modifiers()
		if t.Mods == nil && t.Name == "bit" && !literal {
			t.Mods = []int32{1}
		}
	case "char", "character", "nchar", "national", "varchar":
		if word == "national" {
			p.expectWord("char", "character")
		}
		if word != "varchar" && p.accept("varying") {
			t.Name = "varchar"
		}
		if p.tok.punct("(") {
			t.Mods = []int32{p.precision()}
		} else if t.Name == "bpchar" && !literal {
			t.Mods = []int32{1}
		}
	case "time", "timestamp":
		if p.tok.punct("(") {
			t.Mods = []int32{p.precision()}
		}
		if p.acceptSeq("with", "time", "zone") {
			t.Name += "tz"
		} else {
			p.acceptSeq("without", "time", "zone")
		}
	case "interval":
		if p.tok.punct("(") {
			t.Mods = []int32{p.precision()}
		} else if !literal {
			t.Fields, t.Mods = p.intervalFields()
		}
	}
	return t
}

// genericType takes [schema.]name[(modifiers)].
func (p *parser) genericType() (t ast.TypeName) {
	if !isFuncToken(p.tok) && !(isNameToken(p.tok) && p.peek(1).punct(".")) {
		p.unexpected("a type")
	}
	from := p.tok.from
	first := p.ident()
	t.Name = first.Name
	if p.acceptPunct(".") {
		t.Schema = first
		t.Name = p.label("a type").Name
		if p.tok.punct(".") {
			p.failAt(pgerr.SyntaxError, from, "improper type name (too many dotted names)")
		}
	}
	t.Mods = p.modifiers()
	return t
}

// modifiers takes (10, 2) if it is there.
func (p *parser) modifiers() (mods []int32) {
	if !p.acceptPunct("(") {
		return nil
	}
	for {
		negative := p.tok.op("-")
		if negative {
			p.advance()
		}
		n := p.int32("a type modifier")
		if negative {
			n = -n
		}
		mods = append(mods, n)
		if !p.acceptPunct(",") {
			break
		}
	}
	p.expectPunct(")")
	return mods
}

// precision takes (n).
func (p *parser) precision() int32 {
	p.expectPunct("(")
	n := p.int32("an integer")
	p.expectPunct(")")
	return n
}

func (p *parser) int32(what string) int32 {
	if !p.tok.integer() {
		p.unexpected(what)
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if err != nil {
		p.failAt(pgerr.NumericValueOutOfRange, p.tok.from, "value %q is out of range for type integer", p.tok.text)
	}
	p.advance()
	return int32(n)
}

var intervalRanges = map[string]ast.IntervalFields{
	"year": ast.Year, "month": ast.Month, "day": ast.Day, "hour": ast.Hour, "minute": ast.Minute, "second": ast.Second,
	"year to month": ast.YearToMonth, "day to hour": ast.DayToHour, "day to minute": ast.DayToMinute,
	"day to second": ast.DayToSecond, "hour to minute": ast.HourToMinute, "hour to second": ast.HourToSecond,
	"minute to second": ast.MinuteToSecond,
}

// intervalFields takes DAY TO SECOND(3) and its like, if it is there.
func (p *parser) intervalFields() (fields ast.IntervalFields, mods []int32) {
	if p.tok.kind != tokWord || intervalRanges[p.tok.text] == 0 {
		return ast.AnyField, nil
	}
	name := p.advance().text
	if p.is("to") {
		p.advance()
		if p.tok.kind != tokWord || intervalRanges[name+" to "+p.tok.text] == 0 {
			p.unexpected("an interval's field smaller than " + strings.ToUpper(name))
		}
		name += " to " + p.advance().text
	}
	if strings.HasSuffix(name, "second") && p.tok.punct("(") {
		mods = []int32{p.precision()}
	}
	return intervalRanges[name], mods
}
