package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// The bounds on what views and WITH may expand to.
const (
	maxViewDepth = 64
	maxTrees     = plan.MaxNodes / 4 // nodes of the logical tree; each becomes a few physical ones at most
	maxColumns   = 1600              // of one relation, as PostgreSQL's MaxHeapAttributeNumber
)

// binder is the state of binding one statement.
type binder struct {
	env Env
	// stored: the query is a view's, sink's or job's; ad hoc otherwise.
	stored  bool
	late    plan.Late // from the options of the view or sink
	ids     catalog.IDs
	params  []*expr.Node // one shared node a parameter, typed in place by its first use
	notices []Notice
	reads   map[uint64]bool
	ctes    *cteScope
	views   []string // names of the views that are being expanded, outermost first
	trees   int
	// rewriting: the query is bound; what is made now replaces something.
	rewriting bool
}

func newBinder(env Env) *binder {
	if env.Catalog == nil {
		env.Catalog = catalog.Empty()
	}
	b := &binder{env: env, ids: env.Catalog.IDs(), reads: map[uint64]bool{}}
	for i, t := range env.Params {
		b.params = append(b.params, &expr.Node{Op: expr.OpParam, Index: i, Type: t})
	}
	return b
}

// head fills in what all results have; it fails if a parameter has no type.
func (b *binder) head(tag string, columns []plan.Column) (Head, error) {
	h := Head{Tag: tag, Columns: columns, Notices: b.notices}
	for i, p := range b.params {
		if p == nil || p.Type.Kind == column.Unknown {
			return h, pgerr.Newf(pgerr.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1)
		}
		h.Params = append(h.Params, p.Type)
	}
	for id := range b.reads {
		h.Reads = append(h.Reads, id)
	}
	slices.Sort(h.Reads)
	return h, nil
}

func (b *binder) notice(format string, args ...any) {
	b.notices = append(b.notices, Notice{Code: pgerr.SuccessfulCompletion, Message: pgerr.Newf("", format, args...).Message})
}

// pos is the position of a node for an expr.Node: its byte offset, or 0 inside a view's text, whose offsets mean nothing to
// who reads the message.
func (b *binder) pos(n ast.Node) int {
	if len(b.views) > 0 {
		return 0
	}
	return n.Pos()
}

// at gives an error the position of a node.
func (b *binder) at(err *pgerr.Error, n ast.Node) *pgerr.Error {
	if len(b.views) > 0 || n == nil {
		return err
	}
	return err.At(n.Pos() + 1)
}

func (b *binder) errorf(n ast.Node, code, format string, args ...any) *pgerr.Error {
	return b.at(pgerr.Newf(code, format, args...), n)
}

// unsupported is the refusal of what is not there yet; what reads like "DISTINCT in an aggregate".
func (b *binder) unsupported(n ast.Node, what string) *pgerr.Error {
	return b.errorf(n, pgerr.FeatureNotSupported, "%s is not supported yet", what)
}
