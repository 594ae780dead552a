package column

import "github.com/leat-io/leat/internal/decimal"

// Interval is PostgreSQL's interval: three parts that do not convert into each other.
type Interval struct {
	Months, Days int32
	Micros       int64
}

// Bitmap has one bit a row, bit i%64 of word i/64; nil means that every row is valid.
type Bitmap []uint64

// Vector holds Len values of one type. Exactly the slices that Type.Kind names are in use, each of length Len
// (Off: Len+1, Off[0] may be greater than 0). Values of rows that are not valid are unspecified but harmless.
type Vector struct {
	Type  Type
	Len   int
	Valid Bitmap

	Bools []bool
	I16   []int16
	I32   []int32
	I64   []int64
	F32   []float32
	F64   []float64
	Dec   []decimal.Decimal
	Iv    []Interval
	Off   []uint32
	Data  []byte

	bits Bitmap // spare words for Valid, kept between uses
	view bool   // the slices belong to another vector: Reset gives them up
	// viewBits: Valid belongs to another vector as well.
	viewBits bool
}

// Batch is a slice of a relation: Len rows, each with a weight. Its vectors all have Len values.
type Batch struct {
	Len  int
	Cols []*Vector
	// Weights is nil when every row has weight +1. -1 retracts a row; other weights are legal.
	Weights []int64
	// Late makes the columns that are nil. It is itself nil but on the way from a source to a filter.
	Late Late

	spare []int64 // memory for Weights, kept between uses
	view  bool    // Weights belong to another batch
}

// MaxRows is how many rows operators put into a batch; readers accept any number up to 1<<16.
const MaxRows = 1024

// MaxBytes is how many bytes of values of variable width there are in a batch that is passed on though it has less than MaxRows rows: memory is bounded
// however long values are.
const MaxBytes = 4 << 20
