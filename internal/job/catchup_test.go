package job

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/testlog"
)

// TestAStartThatTakesLongSaysSo: what is left is told after two seconds, and every ten from then on, until the start goes on.
func TestAStartThatTakesLongSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Text
		m := &Manager{o: Options{Clock: clock.Real}, log: slog.New(slog.NewTextHandler(&log, nil)), jobs: map[uint64]*job{}}
		stop := m.reportCatchUp([]Position{{Relation: 1, Offset: 70}, {Relation: 1, Partition: 1, Offset: 30}, {Relation: 2, Offset: 5}})
		for _, step := range []struct {
			wait  time.Duration
			lines int
		}{{1900 * time.Millisecond, 0}, {200 * time.Millisecond, 1}, {9 * time.Second, 1}, {time.Second, 2}} {
			time.Sleep(step.wait) // of the bubble
			synctest.Wait()
			if got := strings.Count(log.String(), "\n"); got != step.lines {
				t.Fatalf("%d lines, want %d:\n%s", got, step.lines, log.String())
			}
		}
		stop()
		time.Sleep(time.Minute)
		if got := strings.Count(log.String(), "tables=2 records_left=105"); got != 2 {
			t.Errorf("%d lines with what is left:\n%s", got, log.String())
		}
	})
}
