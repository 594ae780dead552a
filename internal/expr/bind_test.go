package expr

import (
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/parse"
)

// bindText binds an expression without columns, as the binder does, only smaller.
func bindText(text string) (*Node, error) {
	e, err := parse.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return bind(e)
}

var typesByName = map[string]column.Type{
	"bool": tBool, "int2": tInt2, "int4": tInt4, "int8": tInt8, "float4": tFloat4, "float8": tFloat8, "numeric": tNumeric,
	"text": tText, "varchar": tVarchar, "bytea": tBytea, "date": tDate, "time": tTime, "timestamp": tTimestamp,
	"timestamptz": tTimestamptz, "interval": tInterval, "jsonb": tJSONB,
}

func bindType(n ast.TypeName) (column.Type, error) {
	t, ok := typesByName[n.Name]
	if !ok {
		return t, fmt.Errorf("no type %s", n.Name)
	}
	if n.Dims > 0 {
		return column.Type{Kind: column.Array, Elem: t.Kind}, nil
	}
	if len(n.Mods) > 0 {
		switch t.Kind {
		case column.Time, column.Timestamp, column.Timestamptz, column.IntervalKind:
			t.Precision = int16(n.Mods[0]) + 1
		default:
			t.Precision = int16(n.Mods[0])
		}
		if len(n.Mods) > 1 {
			t.Scale = int16(n.Mods[1])
		}
	}
	return t, nil
}

func bindAll(es ...ast.Expr) ([]*Node, error) {
	var out []*Node
	for _, e := range es {
		n, err := bind(e)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func bind(e ast.Expr) (*Node, error) {
	pos := e.Pos()
	resolve := func(name string, es ...ast.Expr) (*Node, error) {
		args, err := bindAll(es...)
		if err != nil {
			return nil, err
		}
		return Resolve(name, args, pos)
	}
	switch e := e.(type) {
	case *ast.ColumnRef:
		return bindColumn(e)
	case *ast.Null:
		return Null(tUnknown, pos), nil
	case *ast.Bool:
		return Bool(e.Value), nil
	case *ast.Number:
		return Number(e.Text, pos)
	case *ast.String:
		return Literal(e.Value, pos), nil
	case *ast.TypedString:
		t, err := bindType(e.Type)
		if err != nil {
			return nil, err
		}
		return CastTo(Literal(e.Value.Value, pos), t, Explicit)
	case *ast.Cast:
		t, err := bindType(e.Type)
		if err != nil {
			return nil, err
		}
		x, err := bind(e.X)
		if err != nil {
			return nil, err
		}
		return CastTo(x, t, Explicit)
	case *ast.Logic:
		args, err := bindAll(e.Args...)
		if err != nil {
			return nil, err
		}
		op := OpAnd
		if e.Op == ast.Or {
			op = OpOr
		}
		return Logic(op, args, pos)
	case *ast.Not:
		x, err := bind(e.X)
		if err != nil {
			return nil, err
		}
		return Not(x, pos)
	case *ast.Unary:
		if x, ok := e.X.(*ast.Number); ok && e.Op.Name == "-" {
			return Number("-"+x.Text, pos)
		}
		return resolve(e.Op.Name, e.X)
	case *ast.Binary:
		return resolve(e.Op.Name, e.L, e.R)
	case *ast.Is:
		x, err := bind(e.X)
		if err != nil {
			return nil, err
		}
		var n *Node
		switch e.Kind {
		case ast.IsNull:
			n = IsNull(x, pos)
		case ast.IsTrue:
			n, err = IsTrue(x, pos)
		case ast.IsFalse:
			n, err = IsFalse(x, pos)
		case ast.IsUnknown:
			n, err = IsUnknown(x, pos)
		}
		if err == nil && e.Not {
			n, err = Not(n, pos)
		}
		return n, err
	case *ast.IsDistinct:
		args, err := bindAll(e.L, e.R)
		if err != nil {
			return nil, err
		}
		n, err := IsDistinct(args[0], args[1], pos)
		if err == nil && e.Not {
			n, err = Not(n, pos)
		}
		return n, err
	case *ast.In:
		x, err := bind(e.X)
		if err != nil {
			return nil, err
		}
		list, err := bindAll(e.List...)
		if err != nil {
			return nil, err
		}
		n, err := In(x, list, pos)
		if err == nil && e.Not {
			n, err = Not(n, pos)
		}
		return n, err
	case *ast.Case:
		var whens, thens []*Node
		for _, w := range e.Whens {
			cond, err := bind(w.Cond)
			if err != nil {
				return nil, err
			}
			if e.Operand != nil {
				x, err := bind(e.Operand)
				if err != nil {
					return nil, err
				}
				if cond, err = Resolve("=", []*Node{x, cond}, pos); err != nil {
					return nil, err
				}
			}
			then, err := bind(w.Then)
			if err != nil {
				return nil, err
			}
			whens, thens = append(whens, cond), append(thens, then)
		}
		var els *Node
		if e.Else != nil {
			var err error
			if els, err = bind(e.Else); err != nil {
				return nil, err
			}
		}
		return Case(whens, thens, els, pos)
	case *ast.Array:
		return resolve("array", e.Items...)
	case *ast.Index:
		return resolve("[]", e.X, e.Lo)
	case *ast.AtTimeZone:
		return resolve("timezone", e.Zone, e.X)
	case *ast.FuncCall:
		var es []ast.Expr
		for _, a := range e.Args {
			es = append(es, a.Value)
		}
		return resolve(funcName(e), es...)
	case *ast.Match:
		ops := map[ast.LikeKind]string{ast.Like: "~~", ast.ILike: "~~*"}
		op := ops[e.Kind]
		if e.Not {
			op = "!" + op
		}
		if e.Escape != nil {
			args, err := bindAll(e.Pattern, e.Escape)
			if err != nil {
				return nil, err
			}
			pattern, err := Resolve("like_escape", args, pos)
			if err != nil {
				return nil, err
			}
			x, err := bind(e.X)
			if err != nil {
				return nil, err
			}
			return Resolve(op, []*Node{x, pattern}, pos)
		}
		return resolve(op, e.X, e.Pattern)
	case *ast.Between:
		lo, err := resolve(">=", e.X, e.Lo)
		if err != nil {
			return nil, err
		}
		hi, err := resolve("<=", e.X, e.Hi)
		if err != nil {
			return nil, err
		}
		n, err := Logic(OpAnd, []*Node{lo, hi}, pos)
		if err == nil && e.Not {
			n, err = Not(n, pos)
		}
		return n, err
	}
	return nil, pgerr.Unsupported("the test binder has no %T", e)
}

func funcName(e *ast.FuncCall) string {
	var parts []string
	for _, p := range e.Name.Parts {
		parts = append(parts, p.Name)
	}
	return strings.ToLower(parts[len(parts)-1])
}
