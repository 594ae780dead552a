package parse

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-io/leat/internal/sql/ast"
)

// sameTree ignores where the nodes were written.
var sameTree = cmp.Options{
	cmpopts.IgnoreTypes(ast.Span{}), cmpopts.IgnoreFields(ast.Alter{}, "RestPos"), cmpopts.EquateEmpty(),
}

// dump writes a tree compactly: (Kind field=value ...), leaving out what is not given.
func dump(v any) string {
	var b strings.Builder
	dumpValue(&b, reflect.ValueOf(v))
	return b.String()
}

func dumpValue(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		dumpValue(b, v.Elem())
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(' ')
			}
			dumpValue(b, v.Index(i))
		}
		b.WriteByte(']')
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case ast.Ident:
			b.WriteString(ast.QuoteIdent(x.Name))
			return
		case ast.Name:
			b.WriteString(x.String())
			return
		case ast.TypeName:
			b.WriteString(ast.Format(x))
			return
		case ast.ColumnRef:
			b.WriteString(ast.Format(&x))
			return
		case ast.Number:
			b.WriteString(x.Text)
			return
		case ast.String:
			b.WriteString(ast.QuoteString(x.Value))
			return
		case ast.Operator:
			b.WriteString(ast.Format(ast.Name{Parts: nil}))
			if x.Schema.Given() {
				b.WriteString(x.Schema.Name + ".")
			}
			b.WriteString(x.Name)
			return
		}
		b.WriteString("(" + v.Type().Name())
		for i := range v.NumField() {
			f := v.Field(i)
			if f.IsZero() || f.Type() == reflect.TypeFor[ast.Span]() {
				continue
			}
			fmt.Fprintf(b, " %s=", v.Type().Field(i).Name)
			dumpValue(b, f)
		}
		b.WriteByte(')')
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// checkSpans fails if a node's span is not a range of the text, or not within its parent's.
func checkSpans(t *testing.T, text string, node any) {
	t.Helper()
	var walk func(v reflect.Value, outer ast.Span, where string)
	walk = func(v reflect.Value, outer ast.Span, where string) {
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem(), outer, where)
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), outer, where)
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[ast.Span]() || v.IsZero() {
				return
			}
			if f := v.FieldByName("Span"); f.IsValid() {
				s := f.Interface().(ast.Span)
				where += "/" + v.Type().Name()
				if s.From < outer.From || s.To > outer.To || s.From > s.To {
					t.Errorf("span %v of %s is not within %v, in %q", s, where, outer, text)
				}
				outer = s
			}
			for i := range v.NumField() {
				walk(v.Field(i), outer, where)
			}
		}
	}
	walk(reflect.ValueOf(node), ast.Span{To: len(text)}, "")
}

// roundTrip checks that printing and parsing again gives the same tree, and that a second printing gives the same text.
func roundTrip(t *testing.T, text string, statements []Statement) {
	t.Helper()
	for _, s := range statements {
		printed := ast.Format(s.Node)
		again, err := Parse(printed)
		if err != nil {
			if e, ok := err.(*Error); ok && (e.Code == "54001" || e.Code == "54000") {
				continue // the parentheses that printing adds, or what it spells out, went over a bound
			}
			t.Fatalf("printed text does not parse: %v\n  from %q\n  printed %q", err, text, printed)
		}
		if len(again) != 1 {
			t.Fatalf("printed text is %d statements\n  from %q\n  printed %q", len(again), text, printed)
		}
		if diff := cmp.Diff(s.Node, again[0].Node, sameTree); diff != "" {
			t.Fatalf("printed text gives another tree (-first +second):\n%s\n  from %q\n  printed %q", diff, text, printed)
		}
		if second := ast.Format(again[0].Node); second != printed {
			t.Fatalf("printed again, the text changes:\n  %q\n  %q", printed, second)
		}
	}
}
