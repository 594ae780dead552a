package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteGroups (42)
//
// v2 flexible, v3 messages. A group with members is not deleted.
func init() { register(api{key: 42, min: 0, max: 3, handle: deleteGroups}) }

func deleteGroups(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DeleteGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	for _, id := range req.Groups {
		sg := kmsg.NewDeleteGroupsResponseGroup()
		sg.Group = id
		err := c.s.b.Groups().Delete(ctx, id)
		sg.ErrorCode, sg.ErrorMessage = groupCode(0, err), explain(err)
		resp.Groups = append(resp.Groups, sg)
	}
	return resp, nil
}
