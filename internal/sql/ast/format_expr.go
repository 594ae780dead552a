package ast

import "strconv"

// precedence returns how tightly the outermost construct of an expression binds.
func precedence(e Expr) int {
	switch e := e.(type) {
	case *Logic:
		if e.Op == Or {
			return PrecOr
		}
		return PrecAnd
	case *Not:
		return PrecNot
	case *Is, *IsDistinct, *IsJSON:
		return PrecIs
	case *Between, *In, *Match:
		return PrecMatch
	case *Quantified:
		if likeOperator(e.Op) != "" {
			return PrecMatch
		}
		return operatorPrecedence(e.Op)
	case *Binary:
		return operatorPrecedence(e.Op)
	case *Unary:
		if signs(e.Op) {
			return PrecSign
		}
		return PrecOther
	case *AtTimeZone:
		return PrecZone
	case *Collate:
		return PrecCollate
	case *Cast:
		return PrecCast
	case *TypedString:
		return PrecCast
	}
	return PrecPrimary
}

func operatorPrecedence(op Operator) int {
	if op.Schema.Given() {
		return PrecOther
	}
	return Precedence(op.Name)
}

// signs reports whether a prefix operator is the sign that binds tightly.
func signs(op Operator) bool { return (op.Name == "-" || op.Name == "+") && !op.Schema.Given() }

// likeOperator returns the words of an operator that LIKE ANY stands for, or "".
func likeOperator(op Operator) string {
	if op.Schema.Given() {
		return ""
	}
	switch op.Name {
	case "~~":
		return "LIKE"
	case "~~*":
		return "ILIKE"
	case "!~~":
		return "NOT LIKE"
	case "!~~*":
		return "NOT ILIKE"
	}
	return ""
}

func (w *writer) operator(op Operator) {
	if !op.Schema.Given() {
		w.str(op.Name)
		return
	}
	w.str("OPERATOR(")
	w.ident(op.Schema)
	w.str(".", op.Name, ")")
}

func (w *writer) exprs(list []Expr) { w.list(len(list), func(i int) { w.expr(list[i], PrecLowest) }) }

func (w *writer) parens(q *Query) {
	w.str("(")
	w.query(q)
	w.str(")")
}

// expr writes an expression, in parentheses if it binds less tightly than least.
func (w *writer) expr(e Expr, least int) {
	if precedence(e) < least {
		w.str("(")
		w.bare(e)
		w.str(")")
		return
	}
	w.bare(e)
}

func (w *writer) bare(e Expr) {
	switch e := e.(type) {
	case *Null:
		w.str("NULL")
	case *Bool:
		w.str(map[bool]string{true: "TRUE", false: "FALSE"}[e.Value])
	case *Number:
		w.str(e.Text)
	case *String:
		w.str(QuoteString(e.Value))
	case *BitString:
		w.str(map[bool]string{true: "X'", false: "B'"}[e.Hex], e.Digits, "'")
	case *TypedString:
		w.typedString(e)
	case *Param:
		w.str("$", strconv.Itoa(e.Number))
	case *Default:
		w.str("DEFAULT")
	case *ColumnRef:
		w.path(e.Parts)
	case *Star:
		for _, part := range e.Qualifier {
			w.ident(part)
			w.str(".")
		}
		w.str("*")
	case *Logic:
		prec := precedence(e)
		for i, arg := range e.Args {
			if i > 0 {
				w.str(" ", e.Op.String(), " ")
			}
			w.expr(arg, prec+1)
		}
	case *Not:
		w.str("NOT ")
		w.expr(e.X, PrecNot)
	case *Unary:
		w.unary(e)
	case *Binary:
		prec := precedence(e)
		left := prec
		if prec == PrecCompare {
			left++ // not associative
		}
		w.expr(e.L, left)
		w.str(" ")
		w.operator(e.Op)
		w.str(" ")
		w.expr(e.R, prec+1)
	case *Is:
		w.expr(e.X, PrecIs+1)
		w.is(e.Not)
		w.str(e.Kind.String())
	case *IsDistinct:
		w.expr(e.L, PrecIs+1)
		w.is(e.Not)
		w.str("DISTINCT FROM ")
		w.expr(e.R, PrecIs+1)
	case *IsJSON:
		w.expr(e.X, PrecIs+1)
		w.is(e.Not)
		w.str("JSON")
		if e.Kind != "" {
			w.str(" ", e.Kind)
		}
	case *Between, *In, *Match, *Quantified:
		w.match(e)
	case *AtTimeZone:
		w.expr(e.X, PrecZone)
		if e.Zone == nil {
			w.str(" AT LOCAL")
			break
		}
		w.str(" AT TIME ZONE ")
		w.expr(e.Zone, PrecZone+1)
	case *Collate:
		w.expr(e.X, PrecCollate)
		w.str(" COLLATE ")
		w.path(e.Collation.Parts)
	case *Cast:
		w.expr(e.X, PrecCast)
		w.str("::")
		w.typeName(e.Type)
	case *Grouping:
		w.grouping(e)
	default:
		w.primary(e)
	}
}

func (w *writer) is(not bool) {
	w.str(" IS ")
	w.when(not, "NOT ")
}

func (w *writer) unary(e *Unary) {
	w.operator(e.Op)
	if !signs(e.Op) {
		w.str(" ")
		w.expr(e.X, PrecOther+1)
		return
	}
	least := PrecSign
	if _, ok := e.X.(*Unary); ok {
		least = PrecPrimary // two signs would begin a comment
	}
	w.expr(e.X, least)
}

func (w *writer) typedString(e *TypedString) {
	t := e.Type
	fields, mods := t.Fields, t.Mods
	if fields != AnyField { // in a literal they follow the string
		t.Fields, t.Mods = AnyField, nil
	}
	w.typeName(t)
	w.str(" ", QuoteString(e.Value.Value))
	if fields != AnyField {
		w.str(" ", fields.String())
		if len(mods) > 0 {
			w.str("(", strconv.Itoa(int(mods[0])), ")")
		}
	}
}

// match writes the operators at PrecMatch, and comparisons with ANY and ALL.
func (w *writer) match(e Expr) {
	switch e := e.(type) {
	case *Between:
		w.expr(e.X, PrecMatch+1)
		w.when(e.Not, " NOT")
		w.str(" BETWEEN ")
		w.when(e.Symmetric, "SYMMETRIC ")
		w.expr(e.Lo, PrecMatch+1)
		w.str(" AND ")
		w.expr(e.Hi, PrecMatch+1)
	case *In:
		w.expr(e.X, PrecMatch+1)
		w.when(e.Not, " NOT")
		w.str(" IN ")
		if e.Query != nil {
			w.parens(e.Query)
			return
		}
		w.str("(")
		w.exprs(e.List)
		w.str(")")
	case *Match:
		w.expr(e.X, PrecMatch+1)
		w.when(e.Not, " NOT")
		w.str(" ", e.Kind.String(), " ")
		w.expr(e.Pattern, PrecMatch+1)
		if e.Escape != nil {
			w.str(" ESCAPE ")
			w.expr(e.Escape, PrecMatch+1)
		}
	case *Quantified:
		prec := precedence(e)
		w.expr(e.X, prec+1)
		w.str(" ")
		if words := likeOperator(e.Op); words != "" {
			w.str(words)
		} else {
			w.operator(e.Op)
		}
		w.str(map[bool]string{true: " ALL ", false: " ANY "}[e.All])
		if e.Query != nil {
			w.parens(e.Query)
			return
		}
		w.str("(")
		w.expr(e.Array, PrecLowest)
		w.str(")")
	}
}

// primary writes what needs no parentheses.
func (w *writer) primary(e Expr) {
	switch e := e.(type) {
	case *Exists:
		w.str("EXISTS ")
		w.parens(e.Query)
	case *Subquery:
		w.parens(e.Query)
	case *ArrayQuery:
		w.str("ARRAY")
		w.parens(e.Query)
	case *Row:
		w.when(e.Explicit || len(e.Items) < 2, "ROW")
		w.str("(")
		w.exprs(e.Items)
		w.str(")")
	case *Array:
		w.str("ARRAY[")
		w.exprs(e.Items)
		w.str("]")
	case *Index:
		w.subscripted(e.X)
		w.str("[")
		if e.Lo != nil {
			w.expr(e.Lo, PrecLowest)
		}
		w.when(e.Slice, ":")
		if e.Hi != nil {
			w.expr(e.Hi, PrecLowest)
		}
		w.str("]")
	case *Field:
		w.selected(e.X)
		w.str(".")
		w.ident(e.Name)
	case *FieldStar:
		w.selected(e.X)
		w.str(".*")
	case *Case:
		w.caseExpr(e)
	case *FuncCall:
		w.call(e)
	}
}

// subscripted writes what [ follows.
func (w *writer) subscripted(x Expr) {
	if _, ok := x.(*ColumnRef); ok {
		w.bare(x)
		return
	}
	w.selected(x)
}

// selected writes what .name follows: a name would merge with it.
func (w *writer) selected(x Expr) {
	switch x.(type) {
	case *Index, *Field, *Param, *Subquery:
		w.bare(x)
	default:
		w.str("(")
		w.bare(x)
		w.str(")")
	}
}

func (w *writer) caseExpr(e *Case) {
	w.str("CASE")
	if e.Operand != nil {
		w.str(" ")
		w.expr(e.Operand, PrecLowest)
	}
	for _, arm := range e.Whens {
		w.str(" WHEN ")
		w.expr(arm.Cond, PrecLowest)
		w.str(" THEN ")
		w.expr(arm.Then, PrecLowest)
	}
	if e.Else != nil {
		w.str(" ELSE ")
		w.expr(e.Else, PrecLowest)
	}
	w.str(" END")
}

func (w *writer) grouping(e *Grouping) {
	switch e.Kind {
	case EmptySet:
		w.str("()")
		return
	case GroupingSets:
		w.str("GROUPING SETS")
	case Rollup:
		w.str("ROLLUP")
	case Cube:
		w.str("CUBE")
	}
	w.str(" (")
	if e.Kind == GroupingSets {
		w.groupItems(e.Items)
	} else {
		w.exprs(e.Items)
	}
	w.str(")")
}

// groupItems writes the elements of GROUP BY. A call of a function that has the name of an element needs quotes, which
// functionName gives.
func (w *writer) groupItems(items []Expr) { w.exprs(items) }

// functionName writes the name of a called function: words that have a meaning before a parenthesis get quotes.
func (w *writer) functionName(n Name) {
	if len(n.Parts) == 1 {
		switch name := n.Parts[0].Name; name {
		case "coalesce", "nullif", "greatest", "least", "grouping", "normalize":
			w.str(name)
			return
		case "tumble", "hop", "session", "cumulate", "rollup", "cube", "operator", "current_schema":
			w.str(`"`, name, `"`)
			return
		default:
			if Keyword(name) == TypeFuncName {
				w.str(name)
				return
			}
		}
	}
	w.path(n.Parts)
}

func (w *writer) args(args []Arg) {
	w.list(len(args), func(i int) {
		a := args[i]
		w.when(a.Variadic, "VARIADIC ")
		if a.Name.Given() {
			w.ident(a.Name)
			w.str(" => ")
		}
		w.expr(a.Value, PrecLowest)
	})
}

func (w *writer) call(e *FuncCall) {
	switch e.Syntax {
	case PlainCall:
		w.functionName(e.Name)
		w.str("(")
		w.when(e.Star, "*")
		w.when(e.Distinct, "DISTINCT ")
		w.args(e.Args)
		if len(e.OrderBy) > 0 && !e.WithinGroup {
			w.orderBy(e.OrderBy)
		}
		w.str(")")
	case BareCall:
		w.str(e.Name.Last())
		if len(e.Args) > 0 {
			w.str("(")
			w.args(e.Args)
			w.str(")")
		}
	default:
		w.wordyCall(e)
	}
	if e.WithinGroup {
		w.str(" WITHIN GROUP (")
		w.orderItemsAfter(e.OrderBy)
		w.str(")")
	}
	if e.Filter != nil {
		w.str(" FILTER (WHERE ")
		w.expr(e.Filter, PrecLowest)
		w.str(")")
	}
	switch e.NullsMode {
	case RespectNulls:
		w.str(" RESPECT NULLS")
	case IgnoreNulls:
		w.str(" IGNORE NULLS")
	}
	if e.Over != nil {
		w.str(" OVER ")
		if e.Over.Bare {
			w.ident(e.Over.Ref)
		} else {
			w.windowSpec(e.Over)
		}
	}
}

// wordyCall writes the functions whose arguments are separated by words.
func (w *writer) wordyCall(e *FuncCall) {
	arg := func(i int) Expr { return e.Args[i].Value }
	each := func(first int, words ...string) { // a word before each argument from first on
		for i, word := range words {
			if first+i < len(e.Args) {
				w.str(word)
				w.expr(arg(first+i), PrecLowest)
			}
		}
	}
	switch e.Syntax {
	case ExtractCall:
		each(0, "EXTRACT(", " FROM ")
	case SubstringCall:
		each(0, "SUBSTRING(", " FROM ", " FOR ")
	case SubstringSimilarCall:
		each(0, "SUBSTRING(", " SIMILAR ", " ESCAPE ")
	case OverlayCall:
		each(0, "OVERLAY(", " PLACING ", " FROM ", " FOR ")
	case PositionCall:
		w.str("POSITION(")
		w.expr(arg(1), PrecMatch+1)
		w.str(" IN ")
		w.expr(arg(0), PrecMatch+1)
	case TrimCall:
		sides := map[string]string{"btrim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
		w.str("TRIM(", sides[e.Name.Last()], " ")
		if len(e.Args) > 1 {
			w.expr(arg(1), PrecLowest)
			w.str(" ")
		}
		w.str("FROM ")
		w.expr(arg(0), PrecLowest)
	}
	w.str(")")
}

func (w *writer) windowSpec(s *WindowSpec) {
	w.str("(")
	sep := ""
	part := func() {
		w.str(sep)
		sep = " "
	}
	if s.Ref.Given() {
		part()
		switch s.Ref.Name {
		case "partition", "rows", "range", "groups":
			w.str(`"`, s.Ref.Name, `"`)
		default:
			w.ident(s.Ref)
		}
	}
	if len(s.PartitionBy) > 0 {
		part()
		w.str("PARTITION BY ")
		w.exprs(s.PartitionBy)
	}
	if len(s.OrderBy) > 0 {
		part()
		w.orderItemsAfter(s.OrderBy)
	}
	if s.Frame != nil {
		part()
		w.frame(s.Frame)
	}
	w.str(")")
}

func (w *writer) frame(f *Frame) {
	w.str(f.Mode.String(), " ")
	if f.End != nil {
		w.str("BETWEEN ")
		w.bound(f.Start)
		w.str(" AND ")
		w.bound(*f.End)
	} else {
		w.bound(f.Start)
	}
	w.str([...]string{"", " EXCLUDE NO OTHERS", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"}[f.Exclude])
}

func (w *writer) bound(b Bound) {
	switch b.Kind {
	case UnboundedPreceding:
		w.str("UNBOUNDED PRECEDING")
	case UnboundedFollowing:
		w.str("UNBOUNDED FOLLOWING")
	case CurrentRow:
		w.str("CURRENT ROW")
	default:
		least := PrecAnd + 1 // the AND between the bounds is not the connective
		if _, ok := b.Offset.(*ColumnRef); ok {
			least = PrecPrimary + 1 // it might be named unbounded
		}
		w.expr(b.Offset, least)
		w.str(map[BoundKind]string{Preceding: " PRECEDING", Following: " FOLLOWING"}[b.Kind])
	}
}
