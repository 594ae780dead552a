package expr

import (
	"strings"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// castMethod says how a cast works.
type castMethod uint8

const (
	castNone     castMethod = iota // same representation
	castFunction                   // a kernel of its own
	castText                       // through the text formats of both types
)

// castPairs are PostgreSQL's casts that are not through text, with the least willing context that makes them.
var castPairs = map[[2]column.Kind]CastContext{
	{column.Int16, column.Int32}:   Implicit,
	{column.Int16, column.Int64}:   Implicit,
	{column.Int16, column.Float32}: Implicit,
	{column.Int16, column.Float64}: Implicit,
	{column.Int16, column.Numeric}: Implicit,

	{column.Int32, column.Int16}:   Assignment,
	{column.Int32, column.Int64}:   Implicit,
	{column.Int32, column.Float32}: Implicit,
	{column.Int32, column.Float64}: Implicit,
	{column.Int32, column.Numeric}: Implicit,
	{column.Int32, column.Bool}:    Explicit,
	{column.Bool, column.Int32}:    Explicit,

	{column.Int64, column.Int16}:   Assignment,
	{column.Int64, column.Int32}:   Assignment,
	{column.Int64, column.Float32}: Implicit,
	{column.Int64, column.Float64}: Implicit,
	{column.Int64, column.Numeric}: Implicit,

	{column.Float32, column.Int16}:   Assignment,
	{column.Float32, column.Int32}:   Assignment,
	{column.Float32, column.Int64}:   Assignment,
	{column.Float32, column.Float64}: Implicit,
	{column.Float32, column.Numeric}: Assignment,

	{column.Float64, column.Int16}:   Assignment,
	{column.Float64, column.Int32}:   Assignment,
	{column.Float64, column.Int64}:   Assignment,
	{column.Float64, column.Float32}: Assignment,
	{column.Float64, column.Numeric}: Assignment,

	{column.Numeric, column.Int16}:   Assignment,
	{column.Numeric, column.Int32}:   Assignment,
	{column.Numeric, column.Int64}:   Assignment,
	{column.Numeric, column.Float32}: Implicit,
	{column.Numeric, column.Float64}: Implicit,

	{column.Date, column.Timestamp}:        Implicit,
	{column.Date, column.Timestamptz}:      Implicit,
	{column.Timestamp, column.Date}:        Assignment,
	{column.Timestamp, column.Time}:        Assignment,
	{column.Timestamp, column.Timestamptz}: Implicit,
	{column.Timestamptz, column.Date}:      Assignment,
	{column.Timestamptz, column.Time}:      Assignment,
	{column.Timestamptz, column.Timestamp}: Assignment,
	{column.Time, column.IntervalKind}:     Implicit,
	{column.IntervalKind, column.Time}:     Assignment,

	{column.JSONB, column.Bool}:    Explicit,
	{column.JSONB, column.Int16}:   Explicit,
	{column.JSONB, column.Int32}:   Explicit,
	{column.JSONB, column.Int64}:   Explicit,
	{column.JSONB, column.Float32}: Explicit,
	{column.JSONB, column.Float64}: Explicit,
	{column.JSONB, column.Numeric}: Explicit,
}

// castFunctions are the type names that PostgreSQL also takes as functions of one argument.
var castFunctions = map[string]column.Type{
	"bool": tBool, "int2": tInt2, "int4": tInt4, "int8": tInt8, "float4": tFloat4, "float8": tFloat8, "numeric": tNumeric,
	"text": tText, "varchar": tVarchar, "date": tDate, "time": tTime, "timestamp": tTimestamp, "timestamptz": tTimestamptz,
	"interval": tInterval, "jsonb": tJSONB, "bytea": tBytea,
}

// castRule tells whether there is a cast in a context, and how it works. Modifiers do not matter here.
func castRule(from, to column.Type, ctx CastContext) (castMethod, bool) {
	if sameType(from, to) {
		return castNone, true
	}
	if least, ok := castPairs[[2]column.Kind{from.Kind, to.Kind}]; ok {
		return castFunction, ctx >= least
	}
	switch {
	case from.Kind == column.Array && to.Kind == column.Array:
		_, ok := castRule(from.ElemType(), to.ElemType(), ctx)
		return castText, ok
	case to.Kind == column.Text:
		return castText, ctx >= Assignment
	case from.Kind == column.Text:
		return castText, ctx >= Explicit
	}
	return castNone, false
}

// CanCast tells whether there is a cast from one type to another in a context.
func CanCast(from, to column.Type, ctx CastContext) bool {
	if from.Kind == column.Unknown {
		return true
	}
	_, ok := castRule(from, to, ctx)
	return ok
}

// CastTo makes n of type t. An untyped literal becomes a constant of the type, which fails with 22P02 and its position when
// the text is none; a parameter without a type gets it, in place.
func CastTo(n *Node, t column.Type, ctx CastContext) (*Node, error) {
	if n.Type == t {
		return n, nil
	}
	if n.Type.Kind == column.Unknown {
		return castUnknown(n, t, ctx)
	}
	_, ok := castRule(n.Type, t, ctx)
	if !ok {
		return nil, pgerr.Newf(pgerr.CannotCoerce, "cannot cast type %s to %s", TypeName(n.Type), TypeName(t)).At(position(n.Pos))
	}
	if sameType(n.Type, t) && !bounds(n.Type, t) {
		if n.Type.Varchar == t.Varchar {
			return n, nil
		}
		c := *n
		c.Type = t
		return &c, nil
	}
	c := &Node{Op: OpCall, Type: t, Func: castID(n.Type, t, ctx == Explicit), Args: []*Node{n}, Pos: n.Pos}
	return c, nil
}

// bounds tells whether values of type from must be checked or rounded to be of type to, which holds the same kind of values.
func bounds(from, to column.Type) bool {
	if to.Precision == 0 || to.Kind == column.Array {
		return false
	}
	return from.Precision != to.Precision || from.Scale != to.Scale
}

func castUnknown(n *Node, t column.Type, ctx CastContext) (*Node, error) {
	c := *n
	switch {
	case n.Op == OpParam:
		n.Type = t.Base()
		if bounds(n.Type, t) {
			return CastTo(n, t, ctx)
		}
		n.Type = t
		return n, nil
	case n.Op != OpConst || n.Text == nil:
		c.Type = t
		return &c, nil
	}
	v, err := parseOne(t.Base(), *n.Text, &probes[0])
	if err != nil {
		return nil, err.At(position(n.Pos))
	}
	text := string(formatText(nil, v, 0, nil))
	if zoned(t.Kind) {
		w, err := parseOne(t.Base(), *n.Text, &probes[1])
		if err != nil || string(formatText(nil, w, 0, nil)) != text {
			// What the text means depends on the session's zone or on now() ('today'): it stays a call, evaluated once a
			// batch, until Fold is told both.
			c.Type = tText
			return &Node{Op: OpCall, Type: t, Func: castID(tText, t, true), Args: []*Node{&c}, Pos: n.Pos}, nil
		}
	}
	c.Text, c.Type = &text, t.Base()
	if t.Kind == column.Text {
		c.Type.Varchar = t.Varchar
	}
	if bounds(c.Type, t) {
		b := &Node{Op: OpCall, Type: t, Func: castID(c.Type, t, ctx == Explicit), Args: []*Node{&c}, Pos: n.Pos}
		return foldCast(b)
	}
	c.Type = t
	return &c, nil
}

// probes are two sessions: a literal that means the same in both means the same in all.
var probes = [2]Context{
	{Now: 1_000_000_000_000_000, Zone: time.UTC},
	{Now: 1_234_567_890_123_457, Zone: time.FixedZone("probe", 7*3600+13*60)},
}

// zoned tells whether the text format of a kind may depend on the session's time zone or on now().
func zoned(k column.Kind) bool {
	return k == column.Timestamptz || k == column.Timestamp || k == column.Date || k == column.Time
}

// castID is the identity of a cast in stored plans. Explicit casts differ in that they cut strings silently.
func castID(from, to column.Type, explicit bool) string {
	name := "cast("
	if explicit && to.Kind == column.Text && to.Precision > 0 {
		name = "cut("
	}
	return name + TypeName(bare(from)) + " as " + TypeName(bare(to)) + ")"
}

func isCast(id string) bool { return strings.HasPrefix(id, "cast(") || strings.HasPrefix(id, "cut(") }
