// Package bench measures a node the way its users would use it: it starts one on a folder of the real file system, gives it work through its
// own front ends, and says what that took.
//
// What always holds: what is measured is durable, epochs and acknowledgements included; every figure that depends on the machine's disk is
// given next to what the disk itself does in the same run; a run with wrong results is an error, not a figure.
package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/job"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/session"
	"github.com/leat-io/leat/internal/sql/bind"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Options are those of all benchmarks.
type Options struct {
	// Dir is the data folder; a temporary one, gone afterwards, if empty.
	Dir string
	// Workers is the number of the engine's workers; 0 is one a core.
	Workers int
	// StateMemory bounds what operators keep in memory, in bytes; 0 is the node's default.
	StateMemory int64
	Logger      *slog.Logger
}

// prepare fills in defaults and makes the folder. The function it returns removes it again.
func (o *Options) prepare() (func(), error) {
	if o.Workers < 1 {
		o.Workers = runtime.NumCPU()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if runtime.GOMAXPROCS(0) < o.Workers+2 {
		runtime.GOMAXPROCS(o.Workers + 2) // as the server does
	}
	if o.Dir != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "leat-bench")
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	return func() { _ = os.RemoveAll(dir) }, nil
}

// instance is a node without doors with a session of its own.
type instance struct {
	*node.Core
	engine  *session.Engine
	session *session.Session
	epochs  epochs
}

func open(ctx context.Context, o Options) (*instance, error) {
	in := &instance{}
	core, err := node.OpenCore(ctx, node.CoreOptions{
		Dir: o.Dir, Workers: o.Workers, StateMemory: o.StateMemory, Logger: o.Logger, ObserveEpoch: in.epochs.add,
	})
	if err != nil {
		return nil, err
	}
	in.Core = core
	in.engine, err = session.NewEngine(session.Options{Jobs: core.Jobs, Broker: core.Broker, Clock: clock.Real, Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, core.Close())
	}
	in.session = in.engine.NewSession("leat", "leat")
	return in, nil
}

func (in *instance) close() error {
	in.session.Close()
	return in.Core.Close()
}

// discard is the output of statements whose rows nobody wants.
type discard struct{}

func (discard) Columns([]plan.Column) error    { return nil }
func (discard) Rows(*column.Batch) error       { return nil }
func (discard) Notice(bind.Notice) error       { return nil }
func (discard) Parameter(string, string) error { return nil }

// exec runs the statements of a text.
func (in *instance) exec(ctx context.Context, text string) error {
	return in.query(ctx, text, discard{})
}

func (in *instance) query(ctx context.Context, text string, out session.Output) error {
	statements, err := in.session.Parse(text)
	if err != nil {
		return fmt.Errorf("%w in: %s", err, text)
	}
	for _, st := range statements {
		p, err := in.session.Prepare(st.Node, text, nil)
		if err != nil {
			return fmt.Errorf("%w in: %s", err, text)
		}
		if _, err := in.session.Execute(ctx, p, nil, out); err != nil {
			return fmt.Errorf("%w in: %s", err, text)
		}
	}
	return nil
}

// status is the state of a relation that runs.
func (in *instance) status(name string) (job.RelationStatus, error) {
	for _, s := range in.Jobs.Status() {
		if s.Relation.Name == name {
			if s.Err != nil {
				return s, fmt.Errorf("%s has stopped: %w", name, s.Err)
			}
			return s, nil
		}
	}
	return job.RelationStatus{}, fmt.Errorf("%s does not run", name)
}

// usage is what the process has used so far.
type usage struct {
	at  time.Time
	cpu time.Duration
}

func used() usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return usage{at: time.Now(), cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
}

// since is the wall and CPU time from u on, in seconds.
func (u usage) since() (wall, cpu float64) {
	now := used()
	return now.at.Sub(u.at).Seconds(), (now.cpu - u.cpu).Seconds()
}

// peakRSS is the most memory that the process has had resident, in bytes; 0 where the system does not say.
func peakRSS() int64 { return statusBytes("VmHWM:") }

func statusBytes(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// percentile is the value below which a share of the sorted values lies.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return round(float64(d.Microseconds())/1000, 3) }

// round keeps so many digits behind the point: more would only pretend precision.
func round(x float64, digits int) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64)
	return y
}

// spread is the distribution of durations.
type spread struct{ p50, p99, longest time.Duration }

func spreadOf(d []time.Duration) spread {
	slices.Sort(d)
	s := spread{p50: percentile(d, 0.5), p99: percentile(d, 0.99)}
	if len(d) > 0 {
		s.longest = d[len(d)-1]
	}
	return s
}
