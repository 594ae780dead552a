package ast

import (
	"strconv"
	"strings"
)

// Format prints a node as SQL; parsing the result gives an equal tree (spans apart). It writes parentheses only where the
// tree would come out differently without them.
func Format(n Node) string {
	var w writer
	w.node(n)
	return string(w.buf)
}

// QuoteIdent returns a name as SQL: in quotes if it would not be read back as that name without them.
func QuoteIdent(name string) string {
	if plainName(name) && Keyword(name) == NotKeyword {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteString returns a string literal.
func QuoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// plainName reports whether a name reads back the same without quotes, being no keyword.
func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '$')) {
			return false
		}
	}
	return name != ""
}

// writer collects the text.
type writer struct{ buf []byte }

func (w *writer) str(parts ...string) {
	for _, s := range parts {
		w.buf = append(w.buf, s...)
	}
}

// when writes s if the condition holds.
func (w *writer) when(cond bool, s string) {
	if cond {
		w.str(s)
	}
}

// list writes what each writes for 0 to n-1, separated by commas.
func (w *writer) list(n int, each func(i int)) {
	for i := range n {
		w.when(i > 0, ", ")
		each(i)
	}
}

func (w *writer) ident(i Ident) { w.str(QuoteIdent(i.Name)) }

func (w *writer) idents(list []Ident) { w.list(len(list), func(i int) { w.ident(list[i]) }) }

func (w *writer) columns(list []Ident) {
	w.str("(")
	w.idents(list)
	w.str(")")
}

func (w *writer) path(parts []Ident) {
	for i, part := range parts {
		w.when(i > 0, ".")
		w.ident(part)
	}
}

func (w *writer) names(list []Name) { w.list(len(list), func(i int) { w.path(list[i].Parts) }) }

// node writes any node.
func (w *writer) node(n Node) {
	switch n := n.(type) {
	case Expr:
		w.expr(n, PrecLowest)
	case Stmt: // *Query too
		w.stmt(n)
	case QueryBody:
		w.body(n, 0)
	case TableExpr:
		w.tableExpr(n)
	case Name:
		w.path(n.Parts)
	case Ident:
		w.ident(n)
	case TypeName:
		w.typeName(n)
	case *TypeName:
		w.typeName(*n)
	case SelectItem:
		w.selectItems([]SelectItem{n})
	case OrderItem:
		w.orderItems([]OrderItem{n})
	case ColumnDef:
		w.columnDef(n)
	case Constraint:
		w.constraint(n)
	case *FormatSpec:
		w.format(n)
	}
}

func (w *writer) typeName(t TypeName) {
	w.when(t.SetOf, "SETOF ")
	switch {
	case t.Schema.Given():
		w.ident(t.Schema)
		w.str(".", QuoteIdent(t.Name))
	default:
		w.str(typeText(t))
	}
	if t.Fields != AnyField {
		w.str(" ", t.Fields.String())
	}
	if t.Mods != nil {
		w.str("(")
		w.list(len(t.Mods), func(i int) { w.str(strconv.Itoa(int(t.Mods[i]))) })
		w.str(")")
	}
	w.str(strings.Repeat("[]", t.Dims))
}

// typeText returns an unqualified type's name so that it reads back as the same type.
func typeText(t TypeName) string {
	switch t.Name {
	case "numeric":
		return t.Name
	case "interval", "time", "timestamp", "varchar":
		if len(t.Mods) == 0 || len(t.Mods) == 1 && t.Mods[0] >= 0 {
			return t.Name
		}
	case "bit":
		if t.Mods != nil {
			return t.Name // without a length, the word alone would mean one bit
		}
	}
	return QuoteIdent(t.Name)
}
