package bind

import (
	"math"
	"strconv"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// opAggregate stands for an aggregate call, by its index, until the plan has an aggregate node whose column it becomes. It is
// never in a plan.
const opAggregate expr.Op = "aggregate"

// place is where an expression stands: what it may name and call.
type place struct {
	scope  *scope
	clause string // as messages name it: "WHERE", "GROUP BY" ...
	// calls collects aggregate calls; nil where they are not allowed.
	calls *aggregateCalls
	// within: inside an aggregate's arguments or FILTER, where no further aggregate may be.
	within bool
}

// expr binds an expression. The result may be an untyped literal: see value.
func (b *binder) expr(p place, e ast.Expr) (*expr.Node, error) {
	pos := b.pos(e)
	switch e := e.(type) {
	case *ast.Null:
		return expr.Null(column.TUnknown, pos), nil
	case *ast.Bool:
		n := expr.Bool(e.Value)
		n.Pos = pos
		return n, nil
	case *ast.Number:
		return b.number(e.Text, e)
	case *ast.String:
		return expr.Literal(e.Value, pos), nil
	case *ast.TypedString:
		return b.typedString(e)
	case *ast.Param:
		return b.param(e)
	case *ast.ColumnRef:
		c, err := b.lookup(p.scope, e)
		if err != nil {
			return nil, err
		}
		return c.ref(pos), nil
	case *ast.Logic:
		args, err := b.exprs(p, e.Args)
		if err != nil {
			return nil, err
		}
		op := expr.OpAnd
		if e.Op == ast.Or {
			op = expr.OpOr
		}
		return expr.Logic(op, args, pos)
	case *ast.Not:
		x, err := b.expr(p, e.X)
		if err != nil {
			return nil, err
		}
		return expr.Not(x, pos)
	case *ast.Unary:
		return b.unary(p, e)
	case *ast.Binary:
		return b.binary(p, e)
	case *ast.Is:
		return b.is(p, e)
	case *ast.IsDistinct:
		x, err := b.exprs(p, []ast.Expr{e.L, e.R})
		if err != nil {
			return nil, err
		}
		n, err := expr.IsDistinct(x[0], x[1], pos)
		if err != nil || !e.Not {
			return n, err
		}
		return expr.Not(n, pos)
	case *ast.Between:
		return b.between(p, e)
	case *ast.In:
		return b.in(p, e)
	case *ast.Match:
		return b.match(p, e)
	case *ast.Quantified:
		return b.quantified(p, e)
	case *ast.Cast:
		t, err := b.typeOf(e.Type)
		if err != nil {
			return nil, err
		}
		if a, ok := e.X.(*ast.Array); ok && len(a.Items) == 0 {
			return expr.CastTo(expr.Literal("{}", b.pos(e)), t, expr.Explicit)
		}
		x, err := b.expr(p, e.X)
		if err != nil {
			return nil, err
		}
		return expr.CastTo(x, t, expr.Explicit)
	case *ast.Case:
		return b.caseExpr(p, e)
	case *ast.FuncCall:
		return b.call(p, e)
	case *ast.AtTimeZone:
		if e.Zone == nil {
			return nil, b.unsupported(e, "AT LOCAL").WithHint("Use AT TIME ZONE 'name'.")
		}
		args, err := b.exprs(p, []ast.Expr{e.Zone, e.X})
		if err != nil {
			return nil, err
		}
		return expr.Resolve("timezone", args, pos)
	case *ast.Array:
		return b.array(p, e)
	case *ast.Index:
		return b.index(p, e)
	case *ast.Collate:
		switch e.Collation.Last() {
		case "C", "POSIX", "default", "ucs_basic":
			return b.expr(p, e.X)
		}
		return nil, b.unsupported(e, "collation \""+e.Collation.Last()+"\"").WithHint("All text is in the \"C\" collation.")
	case *ast.Default:
		return nil, b.errorf(e, pgerr.SyntaxError, "DEFAULT is not allowed in this context")
	case *ast.Star:
		return nil, b.errorf(e, pgerr.SyntaxError, "a star is not allowed here: it stands for columns of a select list")
	}
	return nil, b.refuse(e)
}

// refuse names what a node that is not bound stands for.
func (b *binder) refuse(e ast.Expr) error {
	what := "this expression"
	switch e := e.(type) {
	case *ast.Exists:
		what = "EXISTS (sub-query)"
	case *ast.Subquery:
		what = "a sub-query in an expression"
	case *ast.ArrayQuery:
		what = "ARRAY(sub-query)"
	case *ast.BitString:
		what = "a bit string"
	case *ast.IsJSON:
		what = "IS JSON"
	case *ast.Row:
		what = "a row as a value"
	case *ast.Field, *ast.FieldStar:
		what = "a field of a composite value"
	case *ast.Grouping:
		what = [...]string{"GROUPING SETS", "ROLLUP", "CUBE", "the empty grouping set"}[e.Kind]
	}
	return b.unsupported(e, what)
}

func (b *binder) exprs(p place, list []ast.Expr) ([]*expr.Node, error) {
	out := make([]*expr.Node, len(list))
	for i, e := range list {
		n, err := b.expr(p, e)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// value binds an expression that becomes a column: an untyped literal becomes text.
func (b *binder) value(p place, e ast.Expr) (*expr.Node, error) {
	n, err := b.expr(p, e)
	if err != nil {
		return nil, err
	}
	return typed(n)
}

func typed(n *expr.Node) (*expr.Node, error) {
	if n.Type.Kind != column.Unknown {
		return n, nil
	}
	return expr.CastTo(n, column.TText, expr.Implicit)
}

// condition binds a WHERE, ON, HAVING or FILTER.
func (b *binder) condition(p place, e ast.Expr) (*expr.Node, error) {
	n, err := b.expr(p, e)
	if err != nil {
		return nil, err
	}
	n, err = expr.Boolean(n, p.clause)
	if err != nil {
		return nil, b.at(pgerr.From(err), e)
	}
	return n, nil
}

func (b *binder) number(text string, at ast.Node) (*expr.Node, error) {
	n, err := expr.Number(text, b.pos(at))
	if err != nil {
		return nil, b.at(pgerr.From(err), at)
	}
	return n, nil
}

func (b *binder) typedString(e *ast.TypedString) (*expr.Node, error) {
	t := e.Type
	text := e.Value.Value
	if t.Fields != ast.AnyField {
		text = withUnit(text, t.Fields)
		t.Fields = ast.AnyField
	}
	typ, err := b.typeOf(t)
	if err != nil {
		return nil, err
	}
	return expr.CastTo(expr.Literal(text, b.pos(&e.Value)), typ, expr.Explicit)
}

// withUnit writes the unit of INTERVAL '1' HOUR into the text when the text is a bare number.
func withUnit(text string, f ast.IntervalFields) string {
	units := map[ast.IntervalFields]string{
		ast.Year: "year", ast.Month: "month", ast.Day: "day", ast.Hour: "hour", ast.Minute: "minute", ast.Second: "second",
	}
	unit, ok := units[f]
	if !ok {
		return text
	}
	for i, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != ' ' && (i > 0 || c != '-' && c != '+') {
			return text
		}
	}
	return text + " " + unit
}

func (b *binder) param(e *ast.Param) (*expr.Node, error) {
	if b.stored {
		return nil, b.errorf(e, pgerr.UndefinedParameter, "there is no parameter $%d: a stored query has none", e.Number)
	}
	i := e.Number - 1
	if i < 0 || i > 1<<16 {
		return nil, b.errorf(e, pgerr.UndefinedParameter, "there is no parameter $%d", e.Number)
	}
	for len(b.params) <= i {
		b.params = append(b.params, nil)
	}
	if b.params[i] == nil {
		b.params[i] = &expr.Node{Op: expr.OpParam, Index: i, Pos: b.pos(e)}
	}
	return b.params[i], nil
}

func (b *binder) unary(p place, e *ast.Unary) (*expr.Node, error) {
	if n, ok := e.X.(*ast.Number); ok && e.Op.Name == "-" && n.Text != "" && n.Text[0] != '-' {
		// The sign belongs to the literal: -9223372036854775808 is a bigint.
		if v, err := strconv.ParseInt("-"+n.Text, 10, 64); err == nil {
			t := column.TInt64
			if v >= math.MinInt32 {
				t = column.TInt32
			}
			return expr.Const(t, strconv.FormatInt(v, 10), b.pos(e)), nil
		}
	}
	x, err := b.expr(p, e.X)
	if err != nil {
		return nil, err
	}
	return expr.Resolve(e.Op.Name, []*expr.Node{x}, b.pos(e))
}

func (b *binder) binary(p place, e *ast.Binary) (*expr.Node, error) {
	l, lok := e.L.(*ast.Row)
	r, rok := e.R.(*ast.Row)
	if lok && rok {
		return b.compareRows(p, e.Op.Name, l, r, e)
	}
	args, err := b.exprs(p, []ast.Expr{e.L, e.R})
	if err != nil {
		return nil, err
	}
	return expr.Resolve(e.Op.Name, args, operatorPos(b, e))
}

// operatorPos is where the operator stands, which is where PostgreSQL points for one that does not exist. The tree has only
// the operands' ends, so it is the first byte after the left one that is not white space.
func operatorPos(b *binder, e *ast.Binary) int {
	at := e.L.Extent().To
	if len(b.views) > 0 {
		return 0
	}
	for at < len(b.env.Text) && at < e.R.Pos() && (b.env.Text[at] == ' ' || b.env.Text[at] == ')' || b.env.Text[at] == '\n' || b.env.Text[at] == '\t') {
		at++
	}
	return at
}

// compareRows is (a, b) = (c, d) and its siblings, item by item.
func (b *binder) compareRows(p place, op string, l, r *ast.Row, at ast.Node) (*expr.Node, error) {
	if len(l.Items) != len(r.Items) || len(l.Items) == 0 {
		return nil, b.errorf(at, pgerr.SyntaxError, "unequal number of entries in row expressions")
	}
	left, err := b.exprs(p, l.Items)
	if err != nil {
		return nil, err
	}
	right, err := b.exprs(p, r.Items)
	if err != nil {
		return nil, err
	}
	pos := b.pos(at)
	pairs := func(op string, n int) ([]*expr.Node, error) {
		var out []*expr.Node
		for i := range n {
			c, err := expr.Resolve(op, []*expr.Node{left[i], right[i]}, pos)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
		return out, nil
	}
	switch op {
	case "=", "<>", "!=":
		terms, err := pairs(op, len(left))
		if err != nil {
			return nil, err
		}
		return combine(map[bool]expr.Op{true: expr.OpAnd, false: expr.OpOr}[op == "="], terms, pos)
	case "<", "<=", ">", ">=":
		// a < c OR (a = c AND (b < d OR ...)); only the last pair may be equal.
		var out *expr.Node
		for i := len(left) - 1; i >= 0; i-- {
			args := []*expr.Node{left[i], right[i]}
			this := op
			if i < len(left)-1 {
				this = op[:1]
			}
			n, err := expr.Resolve(this, args, pos)
			if err != nil {
				return nil, err
			}
			if out != nil {
				eq, err := expr.Resolve("=", args, pos)
				if err != nil {
					return nil, err
				}
				if out, err = expr.Logic(expr.OpAnd, []*expr.Node{eq, out}, pos); err != nil {
					return nil, err
				}
				if n, err = expr.Logic(expr.OpOr, []*expr.Node{n, out}, pos); err != nil {
					return nil, err
				}
			}
			out = n
		}
		return out, nil
	}
	return nil, b.errorf(at, pgerr.FeatureNotSupported, "operator %s does not compare rows", op)
}

// combine joins terms by AND or OR; one term stays as it is.
func combine(op expr.Op, terms []*expr.Node, pos int) (*expr.Node, error) {
	if len(terms) == 1 {
		return terms[0], nil
	}
	return expr.Logic(op, terms, pos)
}

func (b *binder) is(p place, e *ast.Is) (*expr.Node, error) {
	pos := b.pos(e)
	if row, ok := e.X.(*ast.Row); ok && e.Kind == ast.IsNull {
		// A row IS NULL if all its items are, IS NOT NULL if none is.
		var terms []*expr.Node
		for _, item := range row.Items {
			x, err := b.expr(p, item)
			if err != nil {
				return nil, err
			}
			if e.Not {
				terms = append(terms, expr.IsNotNull(x, pos))
			} else {
				terms = append(terms, expr.IsNull(x, pos))
			}
		}
		return combine(expr.OpAnd, terms, pos)
	}
	x, err := b.expr(p, e.X)
	if err != nil {
		return nil, err
	}
	var n *expr.Node
	switch e.Kind {
	case ast.IsTrue:
		n, err = expr.IsTrue(x, pos)
	case ast.IsFalse:
		n, err = expr.IsFalse(x, pos)
	case ast.IsUnknown:
		n, err = expr.IsUnknown(x, pos)
	default:
		n = expr.IsNull(x, pos)
	}
	if err != nil || !e.Not {
		return n, err
	}
	return expr.Not(n, pos)
}

func (b *binder) between(p place, e *ast.Between) (*expr.Node, error) {
	x, err := b.exprs(p, []ast.Expr{e.X, e.Lo, e.Hi})
	if err != nil {
		return nil, err
	}
	pos := b.pos(e)
	within := func(lo, hi *expr.Node) (*expr.Node, error) {
		l, err := expr.Resolve(">=", []*expr.Node{x[0], lo}, pos)
		if err != nil {
			return nil, err
		}
		h, err := expr.Resolve("<=", []*expr.Node{x[0], hi}, pos)
		if err != nil {
			return nil, err
		}
		return expr.Logic(expr.OpAnd, []*expr.Node{l, h}, pos)
	}
	n, err := within(x[1], x[2])
	if err == nil && e.Symmetric {
		var other *expr.Node
		if other, err = within(x[2], x[1]); err == nil {
			n, err = expr.Logic(expr.OpOr, []*expr.Node{n, other}, pos)
		}
	}
	if err != nil || !e.Not {
		return n, err
	}
	return expr.Not(n, pos)
}

func (b *binder) in(p place, e *ast.In) (*expr.Node, error) {
	if e.Query != nil {
		return nil, b.unsupported(e, "IN (sub-query)").WithHint("Write it as a join with the sub-query in FROM.")
	}
	pos := b.pos(e)
	var n *expr.Node
	var err error
	if row, ok := e.X.(*ast.Row); ok {
		var terms []*expr.Node
		for _, item := range e.List {
			r, ok := item.(*ast.Row)
			if !ok {
				return nil, b.errorf(item, pgerr.SyntaxError, "a row can only be compared with rows")
			}
			t, err := b.compareRows(p, "=", row, r, e)
			if err != nil {
				return nil, err
			}
			terms = append(terms, t)
		}
		n, err = combine(expr.OpOr, terms, pos)
	} else {
		var x *expr.Node
		if x, err = b.expr(p, e.X); err != nil {
			return nil, err
		}
		var list []*expr.Node
		if list, err = b.exprs(p, e.List); err != nil {
			return nil, err
		}
		n, err = expr.In(x, list, pos)
	}
	if err != nil || !e.Not {
		return n, err
	}
	return expr.Not(n, pos)
}

func (b *binder) match(p place, e *ast.Match) (*expr.Node, error) {
	pos := b.pos(e)
	args, err := b.exprs(p, []ast.Expr{e.X, e.Pattern})
	if err != nil {
		return nil, err
	}
	if e.Kind == ast.SimilarTo {
		pattern := args[1:]
		if e.Escape != nil {
			esc, err := b.expr(p, e.Escape)
			if err != nil {
				return nil, err
			}
			pattern = append(pattern, esc)
		}
		if args[1], err = expr.Resolve("similar_to_escape", pattern, pos); err != nil {
			return nil, err
		}
		if e.Not {
			return expr.Resolve("!~", args[:2], pos)
		}
		return expr.Resolve("~", args[:2], pos)
	}
	if e.Escape != nil {
		esc, err := b.expr(p, e.Escape)
		if err != nil {
			return nil, err
		}
		if args[1], err = expr.Resolve("like_escape", []*expr.Node{args[1], esc}, pos); err != nil {
			return nil, err
		}
	}
	op := map[ast.LikeKind]string{ast.Like: "~~", ast.ILike: "~~*"}[e.Kind]
	if e.Not {
		op = "!" + op
	}
	return expr.Resolve(op, args, pos)
}

// quantified is x op ANY (ARRAY[...]) and ALL: a chain over the items.
func (b *binder) quantified(p place, e *ast.Quantified) (*expr.Node, error) {
	if e.Query != nil {
		return nil, b.unsupported(e, "ANY and ALL over a sub-query").WithHint("Write it as a join with the sub-query in FROM.")
	}
	array, ok := e.Array.(*ast.Array)
	if !ok {
		return nil, b.unsupported(e, "ANY and ALL over anything but ARRAY[...]")
	}
	if len(array.Items) == 0 {
		return expr.Bool(e.All), nil
	}
	x, err := b.expr(p, e.X)
	if err != nil {
		return nil, err
	}
	items, err := b.exprs(p, array.Items)
	if err != nil {
		return nil, err
	}
	pos := b.pos(e)
	if e.Op.Name == "=" && !e.All {
		return expr.In(x, items, pos)
	}
	var terms []*expr.Node
	for _, item := range items {
		t, err := expr.Resolve(e.Op.Name, []*expr.Node{x, item}, pos)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	if e.All {
		return combine(expr.OpAnd, terms, pos)
	}
	return combine(expr.OpOr, terms, pos)
}

func (b *binder) caseExpr(p place, e *ast.Case) (*expr.Node, error) {
	var whens, thens []*expr.Node
	var operand *expr.Node
	var err error
	if e.Operand != nil {
		if operand, err = b.value(p, e.Operand); err != nil {
			return nil, err
		}
	}
	for _, w := range e.Whens {
		cond, err := b.expr(p, w.Cond)
		if err != nil {
			return nil, err
		}
		if operand != nil {
			if cond, err = expr.Resolve("=", []*expr.Node{operand, cond}, b.pos(w.Cond)); err != nil {
				return nil, err
			}
		}
		then, err := b.expr(p, w.Then)
		if err != nil {
			return nil, err
		}
		whens, thens = append(whens, cond), append(thens, then)
	}
	var els *expr.Node
	if e.Else != nil {
		if els, err = b.expr(p, e.Else); err != nil {
			return nil, err
		}
	}
	return expr.Case(whens, thens, els, b.pos(e))
}

func (b *binder) array(p place, e *ast.Array) (*expr.Node, error) {
	items, err := b.exprs(p, e.Items)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, b.errorf(e, pgerr.IndeterminateDatatype, "cannot determine type of empty array").
			WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
	}
	items, _, err = expr.Unify("ARRAY", items)
	if err != nil {
		return nil, err
	}
	return expr.Resolve("array", items, b.pos(e))
}

func (b *binder) index(p place, e *ast.Index) (*expr.Node, error) {
	if e.Slice {
		return nil, b.unsupported(e, "a slice of an array")
	}
	args, err := b.exprs(p, []ast.Expr{e.X, e.Lo})
	if err != nil {
		return nil, err
	}
	switch args[0].Type.Kind {
	case column.JSONB:
		return expr.Resolve("->", args, b.pos(e))
	case column.Array:
		return expr.Resolve("[]", args, b.pos(e))
	}
	return nil, b.errorf(e, pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", expr.TypeName(args[0].Type))
}
