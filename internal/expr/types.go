package expr

import (
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/column"
)

// The pseudo-kinds of declared arguments and results; never in a Node, a vector or a plan's types.
const (
	kindAny      column.Kind = 240 + iota // any value, each argument on its own
	kindElement                           // anyelement: all such arguments are of one type
	kindArray                             // anyarray: an array of that type
	kindNonArray                          // anynonarray: as anyelement, but no array
)

// The types that tables of overloads are written with.
var (
	tUnknown     = column.Type{Kind: column.Unknown}
	tBool        = column.Type{Kind: column.Bool}
	tInt2        = column.Type{Kind: column.Int16}
	tInt4        = column.Type{Kind: column.Int32}
	tInt8        = column.Type{Kind: column.Int64}
	tFloat4      = column.Type{Kind: column.Float32}
	tFloat8      = column.Type{Kind: column.Float64}
	tNumeric     = column.Type{Kind: column.Numeric}
	tText        = column.Type{Kind: column.Text}
	tVarchar     = column.Type{Kind: column.Text, Varchar: true}
	tBytea       = column.Type{Kind: column.Bytea}
	tDate        = column.Type{Kind: column.Date}
	tTime        = column.Type{Kind: column.Time}
	tTimestamp   = column.Type{Kind: column.Timestamp}
	tTimestamptz = column.Type{Kind: column.Timestamptz}
	tInterval    = column.Type{Kind: column.IntervalKind}
	tJSONB       = column.Type{Kind: column.JSONB}
	tTextArray   = column.Type{Kind: column.Array, Elem: column.Text}
	tAny         = column.Type{Kind: kindAny}
	tElement     = column.Type{Kind: kindElement}
	tArray       = column.Type{Kind: kindArray}
	tNonArray    = column.Type{Kind: kindNonArray}
)

// kindNames are PostgreSQL's names. They are part of overload identities in stored plans: add, never change.
var kindNames = map[column.Kind]string{
	column.Unknown: "unknown", column.Bool: "boolean", column.Int16: "smallint", column.Int32: "integer",
	column.Int64: "bigint", column.Float32: "real", column.Float64: "double precision", column.Numeric: "numeric",
	column.Text: "text", column.Bytea: "bytea", column.Date: "date", column.Time: "time without time zone",
	column.Timestamp: "timestamp without time zone", column.Timestamptz: "timestamp with time zone",
	column.IntervalKind: "interval", column.JSONB: "jsonb",
	kindAny: "any", kindElement: "anyelement", kindArray: "anyarray", kindNonArray: "anynonarray",
}

// TypeName is the type's name in messages, as PostgreSQL writes it there: without length, precision and scale.
func TypeName(t column.Type) string {
	if t.Kind == column.Array {
		return TypeName(column.Type{Kind: t.Elem, Varchar: t.Varchar}) + "[]"
	}
	if t.Kind == column.Text && t.Varchar {
		return "character varying"
	}
	if n, ok := kindNames[t.Kind]; ok {
		return n
	}
	return fmt.Sprintf("type %d", t.Kind)
}

func typeNames(ts []column.Type) string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = TypeName(t)
	}
	return strings.Join(names, ", ")
}

// bare is the type without what only bounds or names it: the type that overloads are chosen by.
func bare(t column.Type) column.Type { return column.Type{Kind: t.Kind, Elem: t.Elem} }

func sameType(a, b column.Type) bool { return a.Kind == b.Kind && a.Elem == b.Elem }

// category is PostgreSQL's typcategory.
func category(k column.Kind) byte {
	switch k {
	case column.Bool:
		return 'B'
	case column.Int16, column.Int32, column.Int64, column.Float32, column.Float64, column.Numeric:
		return 'N'
	case column.Text:
		return 'S'
	case column.Date, column.Time, column.Timestamp, column.Timestamptz:
		return 'D'
	case column.IntervalKind:
		return 'T'
	case column.Array:
		return 'A'
	case column.Unknown:
		return 'X'
	case kindAny, kindElement, kindArray, kindNonArray:
		return 'P'
	}
	return 'U'
}

// preferred tells whether a type is the preferred one of its category.
func preferred(k column.Kind) bool {
	switch k {
	case column.Bool, column.Float64, column.Text, column.Timestamptz, column.IntervalKind:
		return true
	}
	return false
}
