package bench

import (
	"sync"
	"time"

	"github.com/leat-io/leat/internal/job"
)

// epochs gathers how long epochs took. Islands tell it concurrently.
type epochs struct {
	mu    sync.Mutex
	total []time.Duration
	run   time.Duration
}

func (e *epochs) add(s job.EpochStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total = append(e.total, s.Total)
	e.run += s.Run
}

// take returns what was gathered since the last take.
func (e *epochs) take() (n int, s spread, run time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, s, run = len(e.total), spreadOf(e.total), e.run
	e.total, e.run = nil, 0
	return n, s, run
}
