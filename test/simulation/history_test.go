package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/session"
	"github.com/leat-io/leat/internal/vfs"
)

// The clients that wait in calls, each doing one thing at a time.
const (
	admin    = iota // makes and drops relations
	cashier         // transfers in SQL transactions
	keeper          // makes checkpoints
	nClients = 3
)

// run1 is one history: a node that is stepped, crashed and opened again, with its clients.
type run1 struct {
	seed  uint64
	rng   *rand.Rand
	clock *clock.Manual
	fs    *power
	counts

	core   *node.Core
	engine *session.Engine
	ctx    context.Context // ends when the power goes: no client outlives its node
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	busy  [nClients]bool
	err   error  // of a client
	kind  string // of the fleet's group; empty when it has no members
	world world
}

func history(seed uint64) (c counts, err error) {
	h := &run1{seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), clock: clock.NewManual(time.UnixMilli(startMs + 1_000_000))}
	h.histories = 1
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			h.failed = 1
		}
		if h.core != nil {
			h.leave()
		}
		c = h.counts
	}()
	h.world.init(h.rng)
	h.fs = newPower(vfs.NewCrashable(), rand.New(rand.NewPCG(seed, 1)))
	return c, h.run()
}

func (h *run1) run() error {
	if err := h.open(); err != nil {
		return err
	}
	// Most histories begin when all relations are there; in the others they come to be among everything else.
	for h.rng.IntN(8) > 0 && h.world.defined < len(h.world.setup) {
		h.produce()
		h.define()
		if err := h.drain(); err != nil {
			return err
		}
	}
	steps := 60 + h.rng.IntN(120)
	for range steps {
		if err := h.step(); err != nil {
			return err
		}
	}
	if err := h.drain(); err != nil {
		return err
	}
	if err := h.check(); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	if h.rng.IntN(3) == 0 {
		if err := h.settleFleet(); err != nil {
			return err
		}
	}
	// What a last loss of power leaves, whatever it keeps, shows the same.
	h.fs.cut(h.rng.IntN(101), h.known)
	if err := h.crash(); err != nil {
		return err
	}
	if err := h.drain(); err != nil {
		return err
	}
	return h.check()
}

// open starts a node on what is there.
func (h *run1) open() error {
	h.ctx, h.cancel = context.WithCancel(context.Background())
	o := node.CoreOptions{
		FS: h.fs, Dir: "/data", Clock: h.clock, Stepped: true, Seed: h.rng.Uint64() | 1, Workers: 1 + h.rng.IntN(3), BatchRows: []int{1, 7, 1024}[h.rng.IntN(3)],
		JournalSegmentBytes: []int64{64 << 10, 256 << 10}[h.rng.IntN(2)], CacheBytes: 256 << 10, MemTableBytes: 256 << 10,
		Broker: broker.Options{
			DefaultPartitions: 1, CompactionInterval: time.Hour, // it is stepped
			InitialRebalanceDelay: -1, MinSessionTimeout: time.Millisecond, ConsumerSessionTimeout: fleetSession, ConsumerHeartbeat: 10 * time.Millisecond,
		},
	}
	o.SpillBytes = []int64{0, 0, 1, 300}[o.Seed>>8%4] // what an epoch gives beyond that goes to files
	if h.rng.IntN(2) == 0 {
		o.Broker.TopicDefaults = map[string]string{"internal.segment.bytes": "2000", "min.cleanable.dirty.ratio": "0"} // that of the table is compacted, too
	}
	if h.rng.IntN(4) == 0 {
		o.StateMemory = 1 // as little as there can be: rows are evicted all the time
	}
	if *seedFlag != 0 {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	say("open: %d workers, %d rows a batch", o.Workers, o.BatchRows)
	var err error
	if h.core, err = node.OpenCore(h.ctx, o); err != nil {
		return fmt.Errorf("opening the node: %w", err)
	}
	h.engine, err = session.NewEngine(session.Options{Jobs: h.core.Jobs, Broker: h.core.Broker, Clock: h.clock, Logger: slog.New(slog.DiscardHandler)})
	return err
}

// step does one thing.
func (h *run1) step() error {
	if h.fs.lost() {
		return h.crash()
	}
	switch n := h.rng.IntN(140); {
	case n >= 112:
		h.stepFleet()
	case n >= 105:
		h.produceKeyed()
	case n >= 101:
		h.compact()
	case n == 100:
		h.clock.Advance(time.Duration(h.rng.IntN(200)) * time.Millisecond)
	case n < 20:
		h.produce()
	case n < 27:
		h.produceLegs()
	case n < 45:
		h.advance()
		h.stepJobs()
	case n < 68:
		for range 1 + h.rng.IntN(5) {
			h.stepJournal()
		}
	case n < 72:
		say("publish")
		if err := h.core.Applier.Publish(h.core.Journal.Durable()); err != nil {
			return err
		}
	case n < 75:
		say("apply state")
		if err := h.core.Applier.ApplyState(h.core.Journal.Durable()); err != nil {
			return err
		}
	case n < 78:
		h.start(keeper, func() error { return h.core.Checkpoint(h.ctx) })
	case n < 86:
		h.transfer()
	case n < 92:
		h.define()
	case n < 96:
		return h.check()
	case n < 97:
		n := 1 + h.rng.IntN(60)
		say("the power will go before the %d-th operation", n)
		h.fs.plan(n, h.rng.IntN(101), h.known)
	case n < 98:
		h.fs.cut(h.rng.IntN(101), h.known)
	default:
		return h.drain()
	}
	h.settle()
	return h.failure()
}

func (h *run1) advance() { h.clock.Advance(time.Duration(h.rng.IntN(6_000)) * time.Microsecond) }

func (h *run1) stepJobs() bool {
	progress, _ := h.core.Jobs.Step(h.clock.Now())
	say("jobs: %v", progress)
	return progress
}

func (h *run1) stepJournal() bool {
	progress := h.core.Journal.Step()
	say("journal: %v, durable %d", progress, h.core.Journal.Durable())
	h.acknowledge()
	return progress
}

// settle lets everything that is not stepped go on until it waits.
func (h *run1) settle() { synctest.Wait() }

// start gives a client something to do, if it has nothing to do. An error ends the history, unless the node has lost its power meanwhile.
func (h *run1) start(client int, fn func() error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[client] {
		return false
	}
	h.busy[client] = true
	ctx := h.ctx
	h.tasks.Go(func() {
		err := fn()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.busy[client] = false
		if err != nil && ctx.Err() == nil && h.err == nil {
			h.err = err
		}
	})
	return true
}

func (h *run1) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.core.Journal.Err(); err != nil {
		return fmt.Errorf("the journal has failed: %w", err)
	}
	return h.err
}

func (h *run1) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy == [nClients]bool{}
}

// drain steps until nothing is left to be done; a crash that comes meanwhile is dealt with.
func (h *run1) drain() error {
	for {
		if err := h.settleAll(); err != nil || !h.fs.lost() {
			return err
		}
		if err := h.crash(); err != nil {
			return err
		}
	}
}

// settleAll steps until nothing is left to be done, or the power is gone.
func (h *run1) settleAll() error {
	say("drain")
	quiet := 0
	for n := 0; quiet < 3 && !h.fs.lost(); n++ {
		if n > 20_000 {
			return errors.New("the node does not come to rest")
		}
		h.clock.Advance(2 * time.Millisecond)
		h.settle()
		progress, _ := h.core.Jobs.Step(h.clock.Now())
		h.settle()
		for h.core.Journal.Step() {
			progress = true
			h.acknowledge()
			h.settle()
		}
		if quiet++; progress || !h.idle() {
			quiet = 0
		}
		if err := h.failure(); err != nil {
			return err
		}
	}
	return nil
}

// leave ends the node and its clients, on the old file system.
func (h *run1) leave() {
	h.cancel()
	if err := h.core.Close(); err != nil {
		say("closing: %v", err)
	}
	h.tasks.Wait()
	h.core = nil
}

// crash goes on with what the file system had when the power went.
func (h *run1) crash() error {
	known, _ := h.fs.known.(known)
	say("crash: %d%% of what was not synced survives", h.fs.percent)
	h.crashes++
	h.leave()
	h.fs = newPower(h.fs.found, rand.New(rand.NewPCG(h.seed, uint64(h.crashes)+1)))
	h.busy, h.err = [nClients]bool{}, nil
	var back atomic.Bool
	if h.rng.IntN(4) == 0 { // the power may go again while the node recovers, or a while later
		h.fs.plan(1+h.rng.IntN(40), h.rng.IntN(101), func() any {
			if back.Load() {
				return h.known()
			}
			return known
		})
	}
	if err := h.open(); err != nil {
		return fmt.Errorf("after crash %d: %w", h.crashes, err)
	}
	if h.fs.lost() {
		return h.crash()
	}
	if err := h.recovered(known); err != nil {
		return fmt.Errorf("after crash %d: %w", h.crashes, err)
	}
	back.Store(true)
	if h.rng.IntN(2) == 0 {
		if err := h.check(); err != nil {
			return fmt.Errorf("right after crash %d: %w", h.crashes, err)
		}
	}
	return nil
}
