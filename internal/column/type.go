// Package column holds values in memory: types, vectors and batches, in Arrow's memory layout where it helps (typed
// slices, offsets and data for variable width, validity bitmaps). It knows nothing above it.
//
// A vector's memory belongs to who made it and is valid until the maker is asked for the next one; whoever keeps rows
// longer copies them. Nothing here allocates per row.
package column

// Kind is the physical and logical kind of a value.
type Kind uint8

// The kinds, with the slice of Vector that holds their values.
const (
	Unknown      Kind = iota // an untyped literal or NULL before the binder has typed it; never in a batch
	Bool                     // Bools
	Int16                    // I16
	Int32                    // I32
	Int64                    // I64
	Float32                  // F32
	Float64                  // F64
	Numeric                  // Dec
	Text                     // Off, Data; text and varchar
	Bytea                    // Off, Data
	Date                     // I32, days since 1970-01-01; math.MinInt32 and MaxInt32 are -infinity and infinity
	Time                     // I64, microseconds since midnight
	Timestamp                // I64, microseconds since 1970-01-01 00:00; math.MinInt64 and MaxInt64 are the infinities
	Timestamptz              // I64, microseconds since the Unix epoch, as Timestamp
	IntervalKind             // Iv
	JSONB                    // Off, Data: PostgreSQL's canonical jsonb text
	Array                    // Off, Data: an encoded array of Type.Elem (see AppendArray)
	numKinds
)

// Type is an SQL type.
type Type struct {
	Kind Kind `json:"k"`
	// Elem is the kind of an array's elements.
	Elem Kind `json:"e,omitempty"`
	// Varchar tells varchar from text: it only changes the name and the OID that clients see.
	Varchar bool `json:"v,omitempty"`
	// Precision is numeric's precision or varchar's length, 0 when none was given. Scale is numeric's scale.
	// For time, timestamp and interval Precision is the number of fractional digits plus one (0: not given).
	Precision int16 `json:"p,omitempty"`
	Scale     int16 `json:"s,omitempty"`
}
