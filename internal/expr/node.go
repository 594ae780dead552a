// Package expr evaluates typed expressions over batches, a vector at a time.
//
// The binder resolves names and overloads (Resolve, Cast) and builds Nodes: plain data, stored as JSON in a job's
// physical plan. A worker compiles them (Compile) into programs that own their scratch memory.
package expr

import "github.com/leat-io/leat/internal/column"

// Op is what a Node does.
type Op string

// The operations. Everything that has an ordinary function's semantics is a Call, operators and casts included.
const (
	OpColumn   Op = "col"      // column Index of the input
	OpConst    Op = "const"    // Text in PostgreSQL's text format; nil is NULL
	OpCall     Op = "call"     // function Func, an overload's identity such as "int8pl(bigint,bigint)"
	OpAnd      Op = "and"      // n-ary, three-valued
	OpOr       Op = "or"       // n-ary, three-valued
	OpNot      Op = "not"      //
	OpCase     Op = "case"     // Args: when1, then1, ..., else (always there); the binder rewrites CASE x WHEN to comparisons
	OpCoalesce Op = "coalesce" // evaluated left to right, only where needed
	OpIsNull   Op = "isnull"   //
	OpIn       Op = "in"       // Args[0] IN (Args[1:] all constants); other lists become OR
	OpParam    Op = "param"    // parameter Index (0-based) of a prepared statement; replaced by a constant before compiling
)

// Node is one typed expression. Its JSON form is stored in plans: fields may be added, never changed.
type Node struct {
	Op    Op          `json:"op"`
	Type  column.Type `json:"t"`
	Index int         `json:"i,omitempty"`
	Text  *string     `json:"v,omitempty"`
	Func  string      `json:"f,omitempty"`
	Args  []*Node     `json:"a,omitempty"`
	// Pos is the byte offset in the statement, for messages; 0 when unknown.
	Pos int `json:"pos,omitempty"`
}
