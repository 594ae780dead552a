package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/leat-io/leat/internal/sql/ast"
)

// TestGolden runs testdata: "sql" prints every statement of its input as Format does, "expr" an expression's tree, "tree" a
// statement's tree, "type" a type; an error is printed with its SQLSTATE and the character that it points at. Everything that
// parses is printed, parsed again and compared.
func TestGolden(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			switch d.Cmd {
			case "sql", "tree":
				statements, err := Parse(d.Input)
				if err != nil {
					return describe(d.Input, err)
				}
				roundTrip(t, d.Input, statements)
				for _, s := range statements {
					checkSpans(t, d.Input, s.Node)
					if d.Cmd == "tree" {
						fmt.Fprintln(&b, dump(s.Node))
					} else {
						fmt.Fprintln(&b, ast.Format(s.Node))
					}
				}
			case "expr":
				for line := range strings.Lines(d.Input) {
					line = strings.TrimSuffix(line, "\n")
					e, err := ParseExpr(line)
					if err != nil {
						b.WriteString(describe(line, err))
						continue
					}
					checkSpans(t, line, e)
					statements, err := Parse("select " + line)
					if err != nil {
						t.Fatalf("%s: %v", line, err)
					}
					roundTrip(t, line, statements)
					fmt.Fprintf(&b, "%s\n    %s\n", ast.Format(e), dump(e))
				}
			case "type":
				for line := range strings.Lines(d.Input) {
					typ, err := ParseType(line)
					if err != nil {
						b.WriteString(describe(line, err))
						continue
					}
					fmt.Fprintln(&b, ast.Format(typ))
				}
			default:
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			return b.String()
		})
	})
}

func describe(text string, err error) string {
	e := err.(*Error)
	s := fmt.Sprintf("%s at %d: %s\n", e.Code, CharPosition(text, e.Position), e.Message)
	if e.Hint != "" {
		s += "  hint: " + e.Hint + "\n"
	}
	return s
}
