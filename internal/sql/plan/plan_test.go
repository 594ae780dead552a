package plan

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
)

func columnsOf(n int) []Column {
	out := make([]Column, n)
	for i := range out {
		out[i] = Column{Name: string(rune('a' + i)), Type: column.TInt64}
	}
	return out
}

// sample is a plan with a node of most kinds.
func sample() *Plan {
	cond := &expr.Node{Op: expr.OpIsNull, Type: column.TBool, Args: []*expr.Node{expr.Column(1, column.TInt64, 0)}}
	return &Plan{Version: Version, Nodes: []*Node{
		{Kind: KindScan, Columns: columnsOf(2), Key: []int{0}, EventTime: -1, RowWatermark: -1, Scan: &Scan{Relation: 7, Columns: []int{0, 1}}},
		{Kind: KindFilter, Inputs: []int{0}, Columns: columnsOf(2), Key: []int{0}, EventTime: -1, RowWatermark: -1, Filter: &Filter{Predicate: cond}},
		{Kind: KindExchange, Inputs: []int{1}, Columns: columnsOf(2), Key: []int{0}, EventTime: -1, RowWatermark: -1, Exchange: &Exchange{Keys: []int{1}}},
		{
			Kind: KindAggregate, Inputs: []int{2}, Columns: columnsOf(2), Key: []int{0}, EventTime: -1, RowWatermark: -1,
			Aggregate: &Aggregate{
				Groups: []int{1}, WindowStart: -1, WindowEnd: -1,
				Calls: []Call{{Func: "max", Args: []int{0}, Types: []column.Type{column.TInt64}, Result: column.TInt64, Filter: -1}},
			},
			Tables: []Table{{ID: 1000, Name: "groups", Version: 1, Key: []column.Type{column.TInt64}}},
		},
		{Kind: KindMaterialize, Inputs: []int{3}, Columns: columnsOf(2), Key: []int{0}, EventTime: -1, RowWatermark: -1, Materialize: &Materialize{Relation: 8}},
	}}
}

func TestPlansComeBack(t *testing.T) {
	t.Parallel()
	raw, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(p)
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("%v\n%s\n%s", err, raw, again)
	}
}

func TestOtherVersionsAreRefusedByName(t *testing.T) {
	t.Parallel()
	p := sample()
	p.Version = 99
	raw, _ := Encode(p)
	if _, err := Decode(raw); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("got %v", err)
	}
}

func TestBrokenPlansAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*Plan){
		"no nodes":            func(p *Plan) { p.Nodes = nil },
		"null node":           func(p *Plan) { p.Nodes[1] = nil },
		"input after itself":  func(p *Plan) { p.Nodes[1].Inputs = []int{3} },
		"too many inputs":     func(p *Plan) { p.Nodes[1].Inputs = []int{0, 0} },
		"unknown kind":        func(p *Plan) { p.Nodes[1].Kind = "magic" },
		"missing payload":     func(p *Plan) { p.Nodes[1].Filter = nil },
		"missing expression":  func(p *Plan) { p.Nodes[1].Filter.Predicate = nil },
		"column out of range": func(p *Plan) { p.Nodes[1].Filter.Predicate.Args[0].Index = 2 },
		"key out of range":    func(p *Plan) { p.Nodes[0].Key = []int{2} },
		"negative key":        func(p *Plan) { p.Nodes[2].Exchange.Keys = []int{-1} },
		"group out of range":  func(p *Plan) { p.Nodes[3].Aggregate.Groups = []int{5} },
		"half a window":       func(p *Plan) { p.Nodes[3].Aggregate.WindowEnd = 1 },
		"argument types":      func(p *Plan) { p.Nodes[3].Aggregate.Calls[0].Types = nil },
		"wrong width":         func(p *Plan) { p.Nodes[4].Columns = columnsOf(3) },
		"scan's width":        func(p *Plan) { p.Nodes[0].Scan.Columns = []int{0} },
		"event time":          func(p *Plan) { p.Nodes[0].EventTime = 2 },
	}
	for name, breakIt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sample()
			breakIt(p)
			raw, _ := Encode(p)
			if _, err := Decode(raw); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestSubstitute(t *testing.T) {
	t.Parallel()
	p := sample()
	param := &expr.Node{Op: expr.OpParam, Type: column.TInt64, Index: 0}
	p.Nodes[1].Filter.Predicate = &expr.Node{Op: expr.OpCall, Func: "=(bigint,bigint)", Type: column.TBool, Args: []*expr.Node{expr.Column(0, column.TInt64, 0), param}}
	out := Substitute(p, []*expr.Node{expr.Const(column.TInt64, "5", 0)})
	if got := Text(out.Nodes[1].Filter.Predicate, out.Nodes[0].Columns); got != "(a = 5)" {
		t.Errorf("got %s", got)
	}
	if got := Text(p.Nodes[1].Filter.Predicate, p.Nodes[0].Columns); got != "(a = $1)" {
		t.Errorf("the plan itself was changed: %s", got)
	}
}

// FuzzDecode: bytes are a plan that hangs together and can be explained, or an error.
func FuzzDecode(f *testing.F) {
	raw, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version":1,"nodes":[{"kind":"values","key":[],"columns":[],"eventTime":-1,"rowWatermark":-1,"values":{"rows":[[]]}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Decode(raw)
		if err != nil {
			return
		}
		if len(p.Nodes) < 50 { // a node may be the input of many: the tree can be exponentially larger
			Explain(p, nil)
		}
	})
}
