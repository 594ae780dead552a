package cli

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/connector/nexmark"
)

// feed writes the events of the Nexmark generator to the topics bid, auction and person as they happen.
type feed struct {
	client *kgo.Client
	rate   int
	events atomic.Int64
	failed atomic.Pointer[error]
}

const (
	shuffled  = 50               // events are out of order within groups of so many
	lateEvery = 2000             // one in so many events is sent again as a late one:
	lateBy    = 40 * time.Second // its time is so far back
	feedTick  = 10 * time.Millisecond
)

func newFeed(addr string, rate int) (*feed, error) {
	client, err := connectBrokers(addr, kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(2*time.Millisecond), kgo.MaxBufferedRecords(200_000))
	if err != nil {
		return nil, err
	}
	return &feed{client: client, rate: rate}, nil
}

func (f *feed) close() { f.client.Close() }

// run produces events at the feed's rate until ctx ends.
func (f *feed) run(ctx context.Context) error {
	start := time.Now()
	c := nexmark.DefaultConfig()
	c.Rate, c.BaseTimeMillis, c.OutOfOrder, c.Seed = int64(f.rate), start.UnixMilli(), shuffled, uint64(start.UnixNano())
	live := nexmark.New(c)
	c.BaseTimeMillis -= lateBy.Milliseconds()
	late := nexmark.New(c)
	topics := [...]string{nexmark.Person: "person", nexmark.Auction: "auction", nexmark.Bid: "bid"}
	var scratch nexmark.Scratch
	send := func(g *nexmark.Generator, k int64) {
		r := &kgo.Record{Topic: topics[nexmark.KindOf(g.ID(k))], Value: g.AppendJSON(nil, k, false, &scratch)}
		f.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil && ctx.Err() == nil {
				f.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	tick := time.NewTicker(feedTick)
	defer tick.Stop()
	for next := int64(0); ; {
		for due := int64(time.Since(start).Seconds() * float64(f.rate)); next < due; next++ {
			send(live, next)
			if next%lateEvery == lateEvery/2+10 { // a bid
				send(late, next)
			}
		}
		f.events.Store(next)
		if err := f.failed.Load(); err != nil {
			return *err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
