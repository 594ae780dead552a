package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// IncrementalAlterConfigs (44)
//
// v1 flexible. Sets (0), deletes (1), appends to (2) and subtracts from (3) settings of topics and groups. The node's own settings are flags of the
// process and cannot be changed while it runs.

func init() { register(api{key: 44, min: 0, max: 1, handle: incrementalAlterConfigs}) }

func incrementalAlterConfigs(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.IncrementalAlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	seen := map[configResource]int{}
	for i := range req.Resources {
		seen[configResource{req.Resources[i].ResourceType, req.Resources[i].ResourceName}]++
	}
	for i := range req.Resources {
		rr := &req.Resources[i]
		sr := kmsg.NewIncrementalAlterConfigsResponseResource()
		sr.ResourceType, sr.ResourceName = rr.ResourceType, rr.ResourceName
		r := configResource{rr.ResourceType, rr.ResourceName}
		err := errTwice
		if seen[r] == 1 {
			err = c.alter(ctx, r, req.ValidateOnly, func(old map[string]string) (map[string]string, error) {
				return applyOps(old, rr.Configs, c.configDefs(r.kind))
			})
		}
		sr.ErrorCode, sr.ErrorMessage = configCode(err), explain(err)
		resp.Resources = append(resp.Resources, sr)
	}
	return resp, nil
}

// configResource is what settings belong to.
type configResource struct {
	kind kmsg.ConfigResourceType
	name string
}

var (
	errTwice      = errors.New("the request names the resource, or one of its settings, twice")
	errNoResource = errors.New("only the settings of topics (2) and groups (32) can be changed while the node runs; `leat server --broker-config NAME=VALUE` starts it with others of its own")
)

var errNoValue = errors.New("a setting has no value")

func noValue(name string) error { return fmt.Errorf("%w: %s", errNoValue, name) }

func configCode(err error) int16 {
	for _, of := range []error{errTwice, errNoResource, errNoValue, broker.ErrInvalidGroup} {
		if errors.Is(err, of) {
			return kerr.InvalidRequest.Code
		}
	}
	return code(err)
}

// configDefs are the settings that a kind of resource has.
func (c call) configDefs(kind kmsg.ConfigResourceType) []broker.ConfigDef {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		return broker.TopicConfigs
	case kmsg.ConfigResourceTypeGroupConfig:
		return c.s.b.Groups().GroupConfigs()
	}
	return nil
}

// alter changes the explicit settings of a resource to what change makes of them.
func (c call) alter(ctx context.Context, r configResource, validateOnly bool, change func(old map[string]string) (map[string]string, error)) error {
	switch r.kind {
	case kmsg.ConfigResourceTypeTopic:
		return c.s.b.ChangeConfigs(ctx, r.name, validateOnly, change)
	case kmsg.ConfigResourceTypeGroupConfig:
		groups := c.s.b.Groups()
		if validateOnly {
			configs, err := change(groups.Configs(r.name))
			if err != nil {
				return err
			}
			return groups.CheckConfigs(r.name, configs)
		}
		return groups.ChangeConfigs(ctx, r.name, change)
	}
	return errNoResource
}

// The operations of a request.
const (
	opSet      kmsg.IncrementalAlterConfigOp = 0
	opDelete   kmsg.IncrementalAlterConfigOp = 1
	opAppend   kmsg.IncrementalAlterConfigOp = 2
	opSubtract kmsg.IncrementalAlterConfigOp = 3
)

// applyOps returns the settings after the operations.
func applyOps(old map[string]string, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig, defs []broker.ConfigDef) (map[string]string, error) {
	configs := maps.Clone(old)
	if configs == nil {
		configs = map[string]string{}
	}
	seen := make(map[string]bool, len(ops))
	for _, op := range ops {
		if seen[op.Name] {
			return nil, errTwice
		}
		seen[op.Name] = true
		if op.Op == opDelete {
			delete(configs, op.Name)
			continue
		}
		if op.Value == nil {
			return nil, noValue(op.Name)
		}
		if op.Op == opSet {
			configs[op.Name] = *op.Value
			continue
		}
		i := slices.IndexFunc(defs, func(d broker.ConfigDef) bool { return d.Name == op.Name })
		if i < 0 || defs[i].Type != broker.ConfigList || op.Op != opAppend && op.Op != opSubtract {
			return nil, fmt.Errorf("%w: %s: only lists can be appended to and subtracted from", broker.ErrInvalidConfig, op.Name)
		}
		value, ok := configs[op.Name]
		if !ok {
			value = defs[i].Default
		}
		configs[op.Name] = changeList(value, *op.Value, op.Op == opAppend)
	}
	return configs, nil
}

// changeList adds the elements of change to the list, or takes them out. Each element is in it once.
func changeList(list, change string, add bool) string {
	var out []string
	for e := range strings.SplitSeq(list, ",") {
		if e = strings.TrimSpace(e); e != "" && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	for e := range strings.SplitSeq(change, ",") {
		e = strings.TrimSpace(e)
		at := slices.Index(out, e)
		switch {
		case e == "":
		case add && at < 0:
			out = append(out, e)
		case !add && at >= 0:
			out = slices.Delete(out, at, at+1)
		}
	}
	return strings.Join(out, ",")
}
