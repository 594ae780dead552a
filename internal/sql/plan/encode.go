package plan

import (
	"encoding/json"
	"fmt"
)

// MaxNodes bounds a stored plan, and what the binder makes of a query whose views and WITH are expanded.
const MaxNodes = 10_000

// Encode returns the JSON form of a plan.
func Encode(p *Plan) ([]byte, error) { return json.Marshal(p) }

// Decode reads the JSON form of a plan and checks it: an engine may rely on every index in it that leads to a node or a
// column. A version that is not Version is refused by name.
func Decode(b []byte) (*Plan, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("decode a plan: %w", err)
	}
	if head.Version != Version {
		return nil, fmt.Errorf("its stored plan has version %d; this binary runs version %d", head.Version, Version)
	}
	p := &Plan{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("decode a plan: %w", err)
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}
