// Package ast holds the syntax tree of Leat's SQL: PostgreSQL's dialect plus the words of streaming SQL.
//
// It owns the shape of what was written, nothing of what it means: names are not resolved, types are not checked, and what
// the binder does not support yet still has a node, so that the refusal can name it.
//
// What always holds:
//   - every node knows the bytes it was parsed from (its Span, relative to the whole string handed to the parser), so that
//     an error can point at it and its text can be stored;
//   - names are folded to lower case by the parser unless they were quoted, so they compare as they are;
//   - Format prints a node so that parsing the result gives an equal tree (spans apart);
//   - a tree is not changed after it was parsed, so it may be shared.
package ast

// Span is the range of bytes [From, To) of a node in the source. A node that was not parsed has an empty one.
type Span struct {
	From, To int
}

// Extent returns the span itself; embedding Span makes a struct a Node.
func (s Span) Extent() Span { return s }

// Pos returns the byte offset at which the node begins.
func (s Span) Pos() int { return s.From }

// Text cuts the span out of the source that was parsed; it is empty if the span does not fit it.
func (s Span) Text(source string) string {
	if s.From < 0 || s.To > len(source) || s.From > s.To {
		return ""
	}
	return source[s.From:s.To]
}

// Node is any part of the tree.
type Node interface {
	Extent() Span
	Pos() int
}

// Ident is one name, already folded unless it was quoted. The zero value, with an empty Name, means "not given".
type Ident struct {
	Span
	Name string
}

// Given reports whether there is a name at all.
func (i Ident) Given() bool { return i.Name != "" }

// Name is a possibly qualified name, outermost part first: [catalog.][schema.]name. It has at least one part, unless it
// is the zero value.
type Name struct {
	Span
	Parts []Ident
}

// Last returns the unqualified name.
func (n Name) Last() string {
	if len(n.Parts) == 0 {
		return ""
	}
	return n.Parts[len(n.Parts)-1].Name
}

// Schema returns the part before the last one, or "" if there is none.
func (n Name) Schema() string {
	if len(n.Parts) < 2 {
		return ""
	}
	return n.Parts[len(n.Parts)-2].Name
}

// Catalog returns the part before the schema, or "" if there is none.
func (n Name) Catalog() string {
	if len(n.Parts) < 3 {
		return ""
	}
	return n.Parts[len(n.Parts)-3].Name
}

// String returns the name as SQL.
func (n Name) String() string { return Format(n) }

// TypeName is a type as written. The spellings that PostgreSQL's grammar knows are mapped to the name in its catalog
// (integer to int4, double precision to float8, timestamp with time zone to timestamptz, character varying to varchar,
// char to bpchar with modifier 1, decimal to numeric); any other name is kept.
type TypeName struct {
	Span
	Schema Ident          // the qualifying schema, if written
	Name   string         // such as "int4", "text", "numeric", "mood"
	Mods   []int32        // numeric(10,2) has 10 and 2; timestamp(3) has 3; interval second(3) has 3
	Fields IntervalFields // interval day to second; AnyField otherwise
	Dims   int            // array dimensions: text[] has 1
	SetOf  bool
}

// IntervalFields restricts an interval to some of its fields, as in INTERVAL '1' HOUR.
type IntervalFields uint8

// The restrictions that the SQL standard has.
const (
	AnyField IntervalFields = iota
	Year
	Month
	Day
	Hour
	Minute
	Second
	YearToMonth
	DayToHour
	DayToMinute
	DayToSecond
	HourToMinute
	HourToSecond
	MinuteToSecond
)

var intervalFieldsText = [...]string{
	"", "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "YEAR TO MONTH", "DAY TO HOUR", "DAY TO MINUTE",
	"DAY TO SECOND", "HOUR TO MINUTE", "HOUR TO SECOND", "MINUTE TO SECOND",
}

func (f IntervalFields) String() string { return intervalFieldsText[f] }
