package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListGroups (16)
//
// v3 flexible, v4 filter by state (KIP-518), v5 filter by type (KIP-848).
func init() { register(api{key: 16, min: 0, max: 5, handle: listGroups}) }

func listGroups(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ListGroupsRequest)
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	wanted := func(filter []string, value string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
	}
	for _, info := range c.s.b.Groups().List() {
		if !wanted(req.StatesFilter, info.State) || !wanted(req.TypesFilter, info.Type) {
			continue
		}
		sg := kmsg.NewListGroupsResponseGroup()
		sg.Group, sg.ProtocolType, sg.GroupState, sg.GroupType = info.ID, info.Kind, info.State, info.Type
		resp.Groups = append(resp.Groups, sg)
	}
	return resp, nil
}
