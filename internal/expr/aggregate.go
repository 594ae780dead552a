package expr

import (
	"github.com/leat-io/leat/internal/column"
)

// Aggregate is a resolved aggregate call.
type Aggregate struct {
	Func   string // count, sum, avg, min, max, bool_and, bool_or
	Args   []*Node
	Result column.Type
}

// IsAggregate tells whether a function name is an aggregate's.
func IsAggregate(name string) bool { return name == "every" || aggregates[name] != nil }

// aggregates map the argument's type to the result's. Where PostgreSQL has no overload for a type, implicit casts
// find one as for functions.
var aggregates = map[string][]Overload{
	"sum": {
		{Name: "sum", Args: []column.Type{tInt2}, Result: tInt8},
		{Name: "sum", Args: []column.Type{tInt4}, Result: tInt8},
		{Name: "sum", Args: []column.Type{tInt8}, Result: tNumeric},
		{Name: "sum", Args: []column.Type{tFloat4}, Result: tFloat4},
		{Name: "sum", Args: []column.Type{tFloat8}, Result: tFloat8},
		{Name: "sum", Args: []column.Type{tNumeric}, Result: tNumeric},
		{Name: "sum", Args: []column.Type{tInterval}, Result: tInterval},
	},
	"avg": {
		{Name: "avg", Args: []column.Type{tInt2}, Result: tNumeric},
		{Name: "avg", Args: []column.Type{tInt4}, Result: tNumeric},
		{Name: "avg", Args: []column.Type{tInt8}, Result: tNumeric},
		{Name: "avg", Args: []column.Type{tFloat4}, Result: tFloat8},
		{Name: "avg", Args: []column.Type{tFloat8}, Result: tFloat8},
		{Name: "avg", Args: []column.Type{tNumeric}, Result: tNumeric},
		{Name: "avg", Args: []column.Type{tInterval}, Result: tInterval},
	},
	"min":      ordered("min"),
	"max":      ordered("max"),
	"bool_and": {{Name: "bool_and", Args: []column.Type{tBool}, Result: tBool}},
	"bool_or":  {{Name: "bool_or", Args: []column.Type{tBool}, Result: tBool}},
	"count":    {{Name: "count", Args: []column.Type{tAny}, Result: tInt8}, {Name: "count", Result: tInt8}},
}

// ordered are the types that PostgreSQL has min and max for.
func ordered(name string) []Overload {
	var out []Overload
	for _, t := range []column.Type{tInt2, tInt4, tInt8, tFloat4, tFloat8, tNumeric, tText, tDate, tTime, tTimestamp, tTimestamptz, tInterval} {
		out = append(out, Overload{Name: name, Args: []column.Type{t}, Result: t})
	}
	return append(out, Overload{Name: name, Args: []column.Type{tArray}, Result: tArray})
}

// ResolveAggregate picks an aggregate by PostgreSQL's rules; count without arguments is count(*).
func ResolveAggregate(name string, args []*Node, pos int) (*Aggregate, error) {
	if name == "every" {
		name = "bool_and"
	}
	types := make([]column.Type, len(args))
	for i, a := range args {
		types[i] = a.Type
	}
	var cands []*Overload
	for i := range aggregates[name] {
		cands = append(cands, &aggregates[name][i])
	}
	o, ambiguous := choose(cands, types, false)
	if o == nil {
		return nil, noOverload(name, types, pos, ambiguous)
	}
	declared, result, ok := o.instantiate(types)
	if !ok {
		return nil, noOverload(name, types, pos, false)
	}
	agg := &Aggregate{Func: name, Result: result}
	for i, a := range args {
		t := declared[i]
		if t.Kind == kindAny {
			if t = a.Type; t.Kind == column.Unknown {
				t = tText
			}
		}
		if a.Type.Kind == column.Text && t.Kind == column.Text {
			t = a.Type
		}
		c, err := CastTo(a, t, Implicit)
		if err != nil {
			return nil, err
		}
		agg.Args = append(agg.Args, c)
	}
	return agg, nil
}
