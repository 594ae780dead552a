package kafka

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListTransactions (66)
//
// v1 those that have been open for longer than a time (KIP-994), v2 those whose id a pattern matches as a whole (KIP-1152).
func init() { register(api{key: 66, min: 0, max: 2, handle: listTransactions}) }

// transactionStates are the names that a filter may have. There is no state between a transaction and its end here.
var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead"}

// maxPattern bounds a pattern of ids.
const maxPattern = 4096

func listTransactions(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ListTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	var pattern *regexp.Regexp
	if p := text(req.TransactionalIDPattern); req.Version >= 2 && p != "" {
		var err error
		if len(p) <= maxPattern {
			pattern, err = regexp.Compile("^(?:" + p + ")$")
		}
		if pattern == nil || err != nil {
			resp.ErrorCode = kerr.InvalidRegularExpression.Code
			return resp, nil
		}
	}
	for _, name := range req.StateFilters {
		if !slices.Contains(transactionStates, name) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	now := c.s.o.Clock.Now()
	for _, info := range c.s.b.Transactions().List() {
		switch {
		case len(req.StateFilters) > 0 && !slices.Contains(req.StateFilters, info.State.String()):
		case len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, info.ProducerID):
		case req.Version >= 1 && req.DurationFilterMillis >= 0 &&
			(info.Started.IsZero() || now.Sub(info.Started) <= time.Duration(req.DurationFilterMillis)*time.Millisecond):
		case pattern != nil && !pattern.MatchString(info.ID):
		default:
			st := kmsg.NewListTransactionsResponseTransactionState()
			st.TransactionalID, st.ProducerID, st.TransactionState = info.ID, info.ProducerID, info.State.String()
			resp.TransactionStates = append(resp.TransactionStates, st)
		}
	}
	return resp, nil
}
