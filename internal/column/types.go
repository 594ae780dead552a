package column

import (
	"fmt"
	"strconv"
)

// The types without modifiers.
var (
	TUnknown     = Type{Kind: Unknown}
	TBool        = Type{Kind: Bool}
	TInt16       = Type{Kind: Int16}
	TInt32       = Type{Kind: Int32}
	TInt64       = Type{Kind: Int64}
	TFloat32     = Type{Kind: Float32}
	TFloat64     = Type{Kind: Float64}
	TNumeric     = Type{Kind: Numeric}
	TText        = Type{Kind: Text}
	TVarchar     = Type{Kind: Text, Varchar: true}
	TBytea       = Type{Kind: Bytea}
	TDate        = Type{Kind: Date}
	TTime        = Type{Kind: Time}
	TTimestamp   = Type{Kind: Timestamp}
	TTimestamptz = Type{Kind: Timestamptz}
	TInterval    = Type{Kind: IntervalKind}
	TJSONB       = Type{Kind: JSONB}
	TTextArray   = Type{Kind: Array, Elem: Text}
)

// ArrayOf is the type of arrays of elem.
func ArrayOf(elem Kind) Type { return Type{Kind: Array, Elem: elem} }

// ElemType is the type of an array's elements.
func (t Type) ElemType() Type { return Type{Kind: t.Elem, Varchar: t.Varchar} }

var kindNames = [numKinds]string{
	Unknown: "unknown", Bool: "boolean", Int16: "smallint", Int32: "integer", Int64: "bigint", Float32: "real",
	Float64: "double precision", Numeric: "numeric", Text: "text", Bytea: "bytea", Date: "date",
	Time: "time without time zone", Timestamp: "timestamp without time zone", Timestamptz: "timestamp with time zone",
	IntervalKind: "interval", JSONB: "jsonb", Array: "array",
}

// String is PostgreSQL's name of the kind's type.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Valid reports whether k is a kind that a batch can hold.
func (k Kind) Valid() bool { return k > Unknown && k < numKinds }

// String is the type as PostgreSQL's format_type prints it: "integer", "numeric(10,2)", "timestamp(3) with time zone", "text[]".
func (t Type) String() string {
	switch t.Kind {
	case Numeric:
		if t.Precision > 0 {
			return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
		}
	case Text:
		if !t.Varchar {
			return "text"
		}
		if t.Precision > 0 {
			return fmt.Sprintf("character varying(%d)", t.Precision)
		}
		return "character varying"
	case Time, Timestamp, Timestamptz, IntervalKind:
		if t.Precision > 0 {
			p := int(t.Precision) - 1
			switch t.Kind {
			case Time:
				return fmt.Sprintf("time(%d) without time zone", p)
			case Timestamp:
				return fmt.Sprintf("timestamp(%d) without time zone", p)
			case Timestamptz:
				return fmt.Sprintf("timestamp(%d) with time zone", p)
			default:
				return fmt.Sprintf("interval(%d)", p)
			}
		}
	case Array:
		return t.ElemType().String() + "[]"
	}
	return t.Kind.String()
}

// Base is the type without modifiers (precision, scale, length); varchar stays varchar.
func (t Type) Base() Type {
	t.Precision, t.Scale = 0, 0
	return t
}

// SameValues reports whether vectors of the two types hold the same values: modifiers and the name varchar do not matter.
func (t Type) SameValues(o Type) bool { return t.Kind == o.Kind && t.Elem == o.Elem }

// FractionDigits is the number of fractional digits of a time, timestamp or interval type: 6 when none was given.
func (t Type) FractionDigits() int {
	if t.Precision > 0 {
		return int(t.Precision) - 1
	}
	return 6
}

// Width is the bytes of a value in a vector's typed slice; 0 for kinds of variable width (offsets and data).
func (k Kind) Width() int {
	switch k {
	case Bool:
		return 1
	case Int16:
		return 2
	case Int32, Float32, Date:
		return 4
	case Int64, Float64, Time, Timestamp, Timestamptz:
		return 8
	case IntervalKind:
		return 16
	case Numeric:
		return 32
	}
	return 0
}

// Varlen reports whether values are in Off and Data.
func (k Kind) Varlen() bool { return k == Text || k == Bytea || k == JSONB || k == Array }

// IsNumber reports whether the kind is a number.
func (k Kind) IsNumber() bool { return k >= Int16 && k <= Numeric }

// IsInteger reports whether the kind is smallint, integer or bigint.
func (k Kind) IsInteger() bool { return k >= Int16 && k <= Int64 }
