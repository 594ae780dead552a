package expr

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
)

var benchTypes = []column.Type{tInt8, tNumeric, tText, tInt8, tInt8}

// benchBatch has bigints, numerics, texts and bigints with NULLs.
func benchBatch() (*column.Batch, []column.Type) {
	r := rand.New(rand.NewPCG(1, 2))
	types := benchTypes
	b := column.NewBatch(types, column.MaxRows)
	words := []string{"apple", "banana", "cherry", "dubai"}
	for i := range column.MaxRows {
		x := int64(r.IntN(1000))
		b.Cols[0].AppendInt64(x)
		d, _ := decimal.New(x*100+7, 2)
		b.Cols[1].AppendDecimal(d)
		b.Cols[2].AppendString(words[r.IntN(4)])
		if i%10 == 0 {
			b.Cols[3].AppendNull()
		} else {
			b.Cols[3].AppendInt64(x)
		}
		b.Cols[4].AppendInt64(int64(r.IntN(1000)))
	}
	b.Len = column.MaxRows
	return b, types
}

// cpuTime is what the process has used, which tells more than the clock on a machine that does other things, too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchNode(b testing.TB, n *Node, err error) *Node {
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkExpr(b *testing.B) {
	in, types := benchBatch()
	cols := make([]*Node, len(types))
	for i, t := range types {
		cols[i] = Column(i, t, 0)
	}
	num := func(s string) *Node {
		n, err := Number(s, 0)
		return benchNode(b, n, err)
	}
	call := func(name string, args ...*Node) *Node {
		n, err := Resolve(name, args, 0)
		return benchNode(b, Fold(benchNode(b, n, err), nil), nil)
	}
	and, err := Logic(OpAnd, []*Node{call(">", cols[0], num("100")), call("<", cols[4], num("500"))}, 0)
	benchNode(b, and, err)
	cases := []struct {
		name   string
		node   *Node
		filter bool
	}{
		{"bigint<const/select", call("<", cols[0], num("500")), true},
		{"bigint%const=0/select", call("=", call("%", cols[0], num("123")), num("0")), true},
		{"bigint<const and bigint<const/select", and, true},
		{"nulls<const/select", call("<", cols[3], num("500")), true},
		{"text=const/select", call("=", cols[2], Literal("cherry", 0)), true},
		{"bigint<const/eval", call("<", cols[0], num("500")), false},
		{"bigint<bigint/eval", call("<", cols[0], cols[4]), false},
		{"bigint+const", call("+", cols[0], num("5")), false},
		{"bigint+bigint", call("+", cols[0], cols[4]), false},
		{"nulls+bigint", call("+", cols[3], cols[4]), false},
		{"bigint*const", call("*", cols[0], num("7")), false},
		{"bigint*bigint", call("*", cols[0], cols[4]), false},
		{"bigint/const", call("/", cols[0], num("7")), false},
		{"numeric*const", call("*", cols[1], num("0.908")), false},
		{"bigint::numeric*const", call("*", cols[0], num("0.908")), false},
		{"numeric<const/select", call("<", cols[1], num("500")), true},
		{"numeric<const/eval", call("<", cols[1], num("500")), false},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			p, err := Compile(c.node, types)
			if err != nil {
				b.Fatal(err)
			}
			var ctx Context
			var sel []int32
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				if c.filter {
					sel, err = p.Select(&ctx, in, sel[:0])
				} else {
					_, err = p.Eval(&ctx, in)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime()-start)/float64(b.N)/float64(in.Len), "cpu-ns/row")
		})
	}
}
