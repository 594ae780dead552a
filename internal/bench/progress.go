package bench

import (
	"context"
	"time"

	"github.com/leat-io/leat/internal/job"
)

// waitForRows waits until the benchmark's query has read so many rows in committed epochs, and returns how many.
func waitForRows(ctx context.Context, status func() []job.RelationStatus, atLeast int64) (int64, error) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		for _, s := range status() {
			if s.Relation.Name == "result" {
				if s.Err != nil {
					return 0, s.Err
				}
				if s.Counts.In >= atLeast {
					return s.Counts.In, nil
				}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
