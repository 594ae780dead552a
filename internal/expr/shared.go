package expr

import (
	"fmt"
	"strconv"

	"github.com/leat-io/leat/internal/column"
)

// sharedEval is one of several equal calls in a program (lower(x) in each branch of a CASE): when one of them has been computed for all rows of
// the batch the others take its result. Each has an evaluator of its own, for those that are asked for some rows only.
type sharedEval struct {
	own  *callEval
	memo *memo
}

type memo struct {
	serial uint64 // of the run that v is of
	v      *column.Vector
}

func (e sharedEval) eval(r *run, sel []int32) *column.Vector {
	if e.memo.serial == r.serial {
		return e.memo.v
	}
	v := e.own.eval(r, sel)
	if sel == nil && r.err == nil {
		e.memo.serial, e.memo.v = r.serial, v
	}
	return v
}

// repeated finds the calls that occur more than once: by their key, with a memo for each. Comparisons are left out, for they mostly select rows
// without making a vector.
func repeated(n *Node) map[string]*memo {
	if size(n) > maxShared {
		return nil // keys of keys: what this costs grows with the square
	}
	counts := map[string]int{}
	if !countCalls(n, counts) {
		return nil
	}
	memos := map[string]*memo{}
	for key, count := range counts {
		if count > 1 {
			memos[key] = &memo{}
		}
	}
	return memos
}

// maxShared is how large an expression may be for its calls to be compared.
const maxShared = 300

func size(n *Node) int {
	if n == nil {
		return 1
	}
	k := 1
	for _, a := range n.Args {
		k += size(a)
	}
	return k
}

// countCalls counts the calls of n by key; false if n is different each time it is computed.
func countCalls(n *Node, counts map[string]int) (same bool) {
	if n == nil {
		return false
	}
	same = true
	for _, a := range n.Args {
		same = countCalls(a, counts) && same
	}
	if n.Op == OpCall {
		if o := registered().byID[n.Func]; o != nil && o.Volatility == Volatile {
			same = false
		}
		if same && n.Type.Kind != column.Bool {
			counts[string(appendShape(nil, n))]++
		}
	}
	return same
}

// appendShape appends what makes an expression what it is: everything but where it stands.
func appendShape(dst []byte, n *Node) []byte {
	if n == nil {
		return append(dst, "nil"...)
	}
	dst = append(dst, n.Op...)
	dst = append(dst, ' ')
	dst = fmt.Appendf(dst, "%+v", n.Type) // all of it: names leave out what some types differ in
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(n.Index), 10)
	dst = strconv.AppendQuote(dst, n.Func)
	if n.Text != nil {
		dst = strconv.AppendQuote(dst, *n.Text)
	}
	dst = append(dst, '(')
	for _, a := range n.Args {
		dst = appendShape(dst, a)
		dst = append(dst, ',')
	}
	return append(dst, ')')
}
