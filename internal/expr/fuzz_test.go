package expr

import (
	"encoding/json"
	"testing"
)

// FuzzPlan compiles and runs expressions from JSON: damaged plans are refused, and none of them panics.
func FuzzPlan(f *testing.F) {
	in, types := benchBatch()
	for _, text := range []string{
		"b0 + b4 * 2", "CASE WHEN b0 > 5 THEN b2 ELSE 'x' END", "b2 IN ('a', 'b')", "coalesce(b3, b0) = 1", "(b1 * 2.5)::int4", "NOT b0 IS NULL AND b2 || 'a' < 'b'",
		"greatest(b0, b4)", "'2024-01-01'::date::text", "(ARRAY[b0, b4])[1]",
	} {
		n, err := bindText(text)
		if err != nil {
			f.Fatal(err)
		}
		data, err := json.Marshal(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := &Node{}
		if json.Unmarshal(data, n) != nil {
			return
		}
		p, err := Compile(n, types)
		if err != nil {
			return
		}
		errs := &RowErrors{}
		if _, err := p.Eval(&Context{Errors: errs}, in); err != nil {
			t.Errorf("rows' errors were to be collected: %v", err)
		}
	})
}
