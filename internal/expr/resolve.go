package expr

import (
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// Resolve makes the call of a function or operator (by its symbol; one argument is a prefix operator), choosing the overload
// and inserting implicit casts by PostgreSQL's rules (its chapter 10). COALESCE, NULLIF, GREATEST and LEAST are known here,
// too. pos is where the call is written.
func Resolve(name string, args []*Node, pos int) (*Node, error) {
	switch name {
	case "!=":
		name = "<>"
	case "coalesce":
		if len(args) == 0 {
			return nil, pgerr.New(pgerr.SyntaxError, "COALESCE needs at least one argument").At(position(pos))
		}
		out, t, err := Unify("COALESCE", args)
		if err != nil {
			return nil, err
		}
		if len(out) == 1 {
			return out[0], nil
		}
		return &Node{Op: OpCoalesce, Type: t, Args: out, Pos: pos}, nil
	case "nullif":
		return nullif(args, pos)
	case "greatest", "least":
		out, t, err := Unify(strings.ToUpper(name), args)
		if err != nil {
			return nil, err
		}
		if len(out) == 1 {
			return out[0], nil
		}
		return call(registered().byName[name][0], out, t, pos), nil
	}
	if name == "array" {
		if len(args) == 0 {
			return Literal("{}", pos), nil // of a type that a cast must tell
		}
		var err error
		if args, _, err = Unify("ARRAY", args); err != nil {
			return nil, err
		}
	}
	types := make([]column.Type, len(args))
	for i, a := range args {
		types[i] = a.Type
	}
	cands := registered().byName[name]
	o, ambiguous := choose(cands, types, isOperator(name))
	if o == nil {
		if len(args) == 1 && !ambiguous {
			if t, ok := castFunctions[name]; ok {
				if _, ok := castRule(args[0].Type, t, Explicit); ok || args[0].Type.Kind == column.Unknown {
					return CastTo(args[0], t, Explicit)
				}
			}
		}
		return nil, noOverload(name, types, pos, ambiguous)
	}
	declared, result, ok := o.instantiate(types)
	if !ok {
		return nil, noOverload(name, types, pos, false)
	}
	out := make([]*Node, len(args))
	for i, a := range args {
		if declared[i].Kind == kindAny {
			out[i] = a
			if a.Type.Kind == column.Unknown {
				declared[i] = tText
			} else {
				continue
			}
		}
		if sameType(a.Type, declared[i]) {
			out[i] = a // a varchar is a text, with or without its length
			continue
		}
		c, err := CastTo(a, declared[i], Implicit)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	if o.via != nil {
		return Resolve(name, castAll(out, o.via), pos)
	}
	if name == "array" {
		result.Varchar = out[0].Type.Varchar
	}
	return call(o, out, result, pos), nil
}

func castAll(args []*Node, types []column.Type) []*Node {
	out := make([]*Node, len(args))
	for i, a := range args {
		c, err := CastTo(a, types[i], Implicit)
		if err != nil {
			panic(err) // a table's via is not reachable by implicit casts
		}
		out[i] = c
	}
	return out
}

func call(o *Overload, args []*Node, result column.Type, pos int) *Node {
	return &Node{Op: OpCall, Type: result, Func: o.ID(), Args: args, Pos: pos}
}

func nullif(args []*Node, pos int) (*Node, error) {
	if len(args) != 2 {
		return nil, pgerr.New(pgerr.SyntaxError, "NULLIF needs two arguments").At(position(pos))
	}
	eq, err := Resolve("=", args, pos)
	if err != nil {
		return nil, err
	}
	// The result is the first argument as the operator takes it. PostgreSQL has operators that compare different integers,
	// floats and times as they are; we compare them as the wider type, but give the first as it was.
	first := eq.Args[0]
	if a, b := args[0].Type, args[1].Type; comparesMixed(a.Kind, b.Kind) {
		first = args[0]
	}
	if first.Type.Kind == column.Text { // there is no operator of varchar
		if first, err = CastTo(first, tText, Implicit); err != nil {
			return nil, err
		}
	}
	return Case([]*Node{eq}, []*Node{Null(first.Type, pos)}, first, pos)
}

func comparesMixed(a, b column.Kind) bool {
	group := func(k column.Kind) int {
		switch k {
		case column.Int16, column.Int32, column.Int64:
			return 1
		case column.Date, column.Timestamp, column.Timestamptz:
			return 2
		}
		return 0
	}
	return group(a) != 0 && group(a) == group(b) || a == column.Float32 && category(b) == 'N'
}

func isOperator(name string) bool {
	return name != "" && strings.ContainsRune("+-*/<>=~!@#%^&|`?", rune(name[0]))
}

// slots are the declared types of o for n arguments; nil when it does not take so many.
func (o *Overload) slots(n int) []column.Type {
	switch {
	case len(o.Args) == n && (!o.Variadic || n > 0):
		return o.Args
	case o.Variadic && n > len(o.Args):
		s := make([]column.Type, n)
		copy(s, o.Args)
		for i := len(o.Args); i < n; i++ {
			s[i] = o.Args[len(o.Args)-1]
		}
		return s
	}
	return nil
}

// accepts tells whether an argument may be passed where a type is declared.
func accepts(declared, actual column.Type) bool {
	switch declared.Kind {
	case kindAny, kindElement:
		return true
	case kindArray:
		return actual.Kind == column.Array || actual.Kind == column.Unknown
	case kindNonArray:
		return actual.Kind != column.Array
	}
	if actual.Kind == column.Unknown || sameType(declared, actual) {
		return true
	}
	_, ok := castRule(actual, declared, Implicit)
	return ok
}

// choose picks the overload for the argument types, or none; ambiguous tells why.
func choose(all []*Overload, args []column.Type, operator bool) (o *Overload, ambiguous bool) {
	type candidate struct {
		o     *Overload
		slots []column.Type
	}
	var cands []candidate
	for _, o := range all {
		if s := o.slots(len(args)); s != nil || (len(args) == 0 && len(o.Args) == 0) {
			cands = append(cands, candidate{o, s})
		}
	}
	exact := func(args []column.Type) *Overload {
	next:
		for _, c := range cands {
			for i, t := range args {
				if t.Kind == column.Unknown || !sameType(c.slots[i], t) {
					continue next
				}
			}
			return c.o
		}
		return nil
	}
	if o := exact(args); o != nil {
		return o, false
	}
	if operator && len(args) == 2 && (args[0].Kind == column.Unknown) != (args[1].Kind == column.Unknown) {
		t := args[0]
		if t.Kind == column.Unknown {
			t = args[1]
		}
		if o := exact([]column.Type{t, t}); o != nil {
			return o, false
		}
	}
	keep := func(better func(c candidate) int) {
		best, out := -1, cands[:0:0]
		for _, c := range cands {
			switch n := better(c); {
			case n > best:
				best, out = n, append(out[:0], c)
			case n == best:
				out = append(out, c)
			}
		}
		cands = out
	}
	fits := cands[:0:0]
next:
	for _, c := range cands {
		for i, t := range args {
			if !accepts(c.slots[i], t) {
				continue next
			}
		}
		fits = append(fits, c)
	}
	cands = fits
	if len(cands) == 0 {
		return nil, false
	}
	if len(cands) > 1 {
		keep(func(c candidate) (n int) {
			for i, t := range args {
				if t.Kind != column.Unknown && sameType(c.slots[i], t) {
					n++
				}
			}
			return n
		})
	}
	if len(cands) > 1 {
		keep(func(c candidate) (n int) {
			for i, t := range args {
				if t.Kind == column.Unknown {
					continue
				}
				if s := c.slots[i]; sameType(s, t) || (preferred(s.Kind) && category(s.Kind) == category(t.Kind)) {
					n++
				}
			}
			return n
		})
	}
	if len(cands) == 1 {
		return cands[0].o, false
	}
	// Untyped arguments: by the categories that the candidates take there.
	unknowns := 0
	var cats []byte
	var prefer []bool
	resolved := true
	for i, t := range args {
		cats, prefer = append(cats, 0), append(prefer, false)
		if t.Kind != column.Unknown {
			continue
		}
		unknowns++
		conflict, hasString := false, false
		for _, c := range cands {
			k := category(c.slots[i].Kind)
			switch {
			case k == 'S':
				hasString = true
			}
			switch {
			case cats[i] == 0:
				cats[i], prefer[i] = k, preferred(c.slots[i].Kind)
			case cats[i] == k:
				prefer[i] = prefer[i] || preferred(c.slots[i].Kind)
			default:
				conflict = true
			}
		}
		if hasString {
			cats[i], conflict, prefer[i] = 'S', false, true
		}
		resolved = resolved && !conflict
	}
	if unknowns == 0 {
		return nil, true
	}
	if resolved {
		out := cands[:0:0]
	nextCand:
		for _, c := range cands {
			for i, t := range args {
				if t.Kind != column.Unknown {
					continue
				}
				if s := c.slots[i].Kind; category(s) != cats[i] || (prefer[i] && !preferred(s)) {
					continue nextCand
				}
			}
			out = append(out, c)
		}
		if len(out) > 0 {
			cands = out
		}
		if len(cands) == 1 {
			return cands[0].o, false
		}
	}
	// All typed arguments of one type: suppose that the untyped ones are of it, too.
	if unknowns < len(args) {
		var t column.Type
		for _, a := range args {
			switch {
			case a.Kind == column.Unknown:
			case t.Kind == column.Unknown:
				t = a
			case !sameType(t, a):
				return nil, true
			}
		}
		var found *Overload
		for _, c := range cands {
			ok := true
			for _, s := range c.slots {
				ok = ok && accepts(s, t)
			}
			if ok {
				if found != nil {
					return nil, true
				}
				found = c.o
			}
		}
		if found != nil {
			return found, false
		}
	}
	return nil, true
}

// instantiate replaces the pseudo-types of o by what the arguments make of them.
func (o *Overload) instantiate(args []column.Type) (declared []column.Type, result column.Type, ok bool) {
	declared = append([]column.Type(nil), o.slots(len(args))...)
	var elem column.Type
	for i, d := range declared {
		t := tUnknown
		switch d.Kind {
		case kindElement, kindNonArray:
			t = bare(args[i])
		case kindArray:
			if args[i].Kind == column.Array {
				t = column.Type{Kind: args[i].Elem}
			}
		}
		switch {
		case t.Kind == column.Unknown:
		case elem.Kind == column.Unknown:
			elem = t
		case !sameType(elem, t):
			return nil, result, false
		}
	}
	if elem.Kind == column.Unknown {
		elem = tText
	}
	concrete := func(d column.Type) column.Type {
		switch d.Kind {
		case kindElement, kindNonArray:
			return elem
		case kindArray:
			return column.Type{Kind: column.Array, Elem: elem.Kind}
		}
		return d
	}
	for i, d := range declared {
		declared[i] = concrete(d)
	}
	return declared, concrete(o.Result), true
}

func noOverload(name string, args []column.Type, pos int, ambiguous bool) error {
	if isOperator(name) {
		what := name
		switch len(args) {
		case 1:
			what = name + " " + TypeName(args[0])
		case 2:
			what = TypeName(args[0]) + " " + name + " " + TypeName(args[1])
		}
		if ambiguous {
			return pgerr.Newf(pgerr.AmbiguousFunction, "operator is not unique: %s", what).
				WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.").At(position(pos))
		}
		e := pgerr.Newf(pgerr.UndefinedFunction, "operator does not exist: %s", what)
		if len(args) == 1 {
			return e.WithHint("No operator matches the given name and argument type. You might need to add an explicit type cast.").At(position(pos))
		}
		return e.WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.").At(position(pos))
	}
	if ambiguous {
		return pgerr.Newf(pgerr.AmbiguousFunction, "function %s(%s) is not unique", name, typeNames(args)).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.").At(position(pos))
	}
	return pgerr.Newf(pgerr.UndefinedFunction, "function %s(%s) does not exist", name, typeNames(args)).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.").At(position(pos))
}
