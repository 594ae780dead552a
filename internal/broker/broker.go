// Package broker owns topics, partitions, idempotent producers, transactions and consumer groups: everything between a door and the journal.
//
// A record batch enters through Produce or a Unit, gets its offset under the journal's ordering lock, travels in a journal unit, and is
// appended to its partition's file by ApplyBatch while the journal is being synced. The high watermark follows the sync. The same
// ApplyBatch runs at recovery.
//
// What always holds:
//   - Offsets of a partition are given out in journal order, without gaps, and never again.
//   - Appended() >= HighWatermark(); both only grow; neither ever lies inside an atomic unit.
//   - A transaction ends in one unit: in all its partitions, with its offsets and for its coordinator. Decided() and StableOffset() never lie behind the
//     first record of one that is open.
//   - A duplicate of an idempotent producer is answered with the offset of the first one, once that is durable.
//   - Metadata (topics, group members, committed offsets) is answered for only when its journal unit is durable.
//   - Coordinators and policies are pure functions; what has goroutines, timers or files is the thin shell around them.
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// Options says what a Broker is built from. Zero values of the optional fields mean Kafka's defaults.
type Options struct {
	Journal *journal.Journal
	KV      *kv.DB
	FS      vfs.FS
	Dir     string // the folder of partition files, the broker's own
	Clock   clock.Clock
	Logger  *slog.Logger

	// Metrics takes the broker's metrics; nil: none.
	Metrics prometheus.Registerer

	Reserve Reserve

	// LagAlerts are the thresholds at which groups that fall behind are reported.
	LagAlerts LagAlerts
	// MetricPartitions bounds the partitions of groups, and the topics, that have metrics of their own; default 1,000.
	MetricPartitions int

	// AutoCreate makes a topic when a client asks for one that does not exist.
	AutoCreate bool
	// DefaultPartitions is the number of partitions when a client leaves it open; default 1.
	DefaultPartitions int32
	// MaxPartitions bounds the partitions of the whole node; default 100,000.
	MaxPartitions int
	// TopicDefaults overrides the built-in defaults of topic settings.
	TopicDefaults map[string]string

	// RetentionInterval is how often retention looks at every partition; default 5 minutes.
	RetentionInterval time.Duration
	// CompactionInterval is how often partitions are looked at for compaction; default 15 seconds.
	CompactionInterval time.Duration
	// CompactionRate bounds what compaction reads and writes, in bytes a second; default 64 MiB. It never works more than half of the time.
	CompactionRate int64
	// CompactionMapBytes bounds the memory for keys while a partition is compacted; default 32 MiB.
	CompactionMapBytes int
	// ProducerExpiry is how long the sequence numbers of a quiet idempotent producer are remembered; default 24 hours.
	ProducerExpiry time.Duration
	// TransactionMaxTimeout bounds the timeout that a transactional producer may ask for; default 15 minutes, as Kafka's transaction.max.timeout.ms.
	TransactionMaxTimeout time.Duration
	// TransactionalIDExpiry is how long a transactional id that nobody uses is remembered; default 7 days, as Kafka's transactional.id.expiration.ms.
	TransactionalIDExpiry time.Duration
	// OffsetsRetention is how long the offsets of an empty group are kept; default 7 days.
	OffsetsRetention time.Duration
	// InitialRebalanceDelay is how long the first members of an empty group wait for others to join the first generation;
	// negative: no wait; default 3 seconds, as Kafka's group.initial.rebalance.delay.ms.
	InitialRebalanceDelay time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what members may ask for; default 6 seconds and 30 minutes.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// ConsumerSessionTimeout and ConsumerHeartbeat are what members of groups in the new protocol are told, unless a setting of their group says
	// otherwise; default 45 and 5 seconds, as Kafka's group.consumer.session.timeout.ms and group.consumer.heartbeat.interval.ms.
	ConsumerSessionTimeout, ConsumerHeartbeat time.Duration
	// ConsumerAssignment is the least time between two assignments of such a group, as Kafka's group.consumer.assignment.interval.ms (which is a second
	// there); default 0: each change is followed by an assignment at once.
	ConsumerAssignment time.Duration
	// What the settings of a group may make of these three; default 45 to 60, 5 to 15 and 0 to 15 seconds, as Kafka's group.consumer.min.session.timeout.ms
	// and so on, and as far beyond as the node's own values are.
	ConsumerMinSession, ConsumerMaxSession, ConsumerMinHeartbeat, ConsumerMaxHeartbeat, ConsumerMinAssignment, ConsumerMaxAssignment time.Duration
	// MaxGroupSize bounds the members of a group; default 10,000.
	MaxGroupSize int
	// MaxOpenFiles bounds the partition files held open; default 1,024.
	MaxOpenFiles int
}

func (o *Options) setDefaults() {
	if o.Clock == nil {
		o.Clock = clock.Real
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.DefaultPartitions <= 0 {
		o.DefaultPartitions = 1
	}
	if o.MaxPartitions <= 0 {
		o.MaxPartitions = 100_000
	}
	if o.RetentionInterval <= 0 {
		o.RetentionInterval = 5 * time.Minute
	}
	if o.CompactionInterval <= 0 {
		o.CompactionInterval = 15 * time.Second
	}
	if o.CompactionRate <= 0 {
		o.CompactionRate = 64 << 20
	}
	if o.ProducerExpiry <= 0 {
		o.ProducerExpiry = 24 * time.Hour
	}
	if o.TransactionMaxTimeout <= 0 {
		o.TransactionMaxTimeout = 15 * time.Minute
	}
	if o.TransactionalIDExpiry <= 0 {
		o.TransactionalIDExpiry = 7 * 24 * time.Hour
	}
	if o.OffsetsRetention <= 0 {
		o.OffsetsRetention = 7 * 24 * time.Hour
	}
	switch {
	case o.InitialRebalanceDelay == 0:
		o.InitialRebalanceDelay = 3 * time.Second
	case o.InitialRebalanceDelay < 0:
		o.InitialRebalanceDelay = 0
	}
	if o.MinSessionTimeout <= 0 {
		o.MinSessionTimeout = 6 * time.Second
	}
	if o.MaxSessionTimeout <= 0 {
		o.MaxSessionTimeout = 30 * time.Minute
	}
	if o.ConsumerSessionTimeout <= 0 {
		o.ConsumerSessionTimeout = 45 * time.Second
	}
	if o.ConsumerHeartbeat <= 0 {
		o.ConsumerHeartbeat = 5 * time.Second
	}
	bounds := func(lo, hi *time.Duration, least, value, most time.Duration) {
		if *lo <= 0 {
			*lo = min(least, value)
		}
		if *hi <= 0 {
			*hi = max(most, value)
		}
	}
	bounds(&o.ConsumerMinSession, &o.ConsumerMaxSession, 45*time.Second, o.ConsumerSessionTimeout, time.Minute)
	bounds(&o.ConsumerMinHeartbeat, &o.ConsumerMaxHeartbeat, 5*time.Second, o.ConsumerHeartbeat, 15*time.Second)
	bounds(&o.ConsumerMinAssignment, &o.ConsumerMaxAssignment, 0, o.ConsumerAssignment, 15*time.Second)
	if o.MaxGroupSize <= 0 {
		o.MaxGroupSize = 10_000
	}
	if o.MetricPartitions <= 0 {
		o.MetricPartitions = 1000
	}
	if o.MaxOpenFiles <= 0 {
		o.MaxOpenFiles = 1024
	}
}

// Broker is the log side of one node.
//
// Locks, outer to inner: ddl, the journal's ordering lock, ends, topicsMu, a partition's logMu. Nothing is waited for while one of
// the last four is held.
type Broker struct {
	o       Options
	journal *journal.Journal
	kv      *kv.DB
	log     *slog.Logger
	clock   clock.Clock
	logs    *commitlog.Manager

	epoch     int32       // leader epoch of this start
	recovered atomic.Bool // the journal was replayed
	running   atomic.Bool
	closed    atomic.Bool
	low       atomic.Bool // the disk is nearly full

	ddl        sync.Mutex // serialises creation and deletion of topics
	topicCheck atomic.Pointer[TopicCheck]

	topicsMu   sync.RWMutex
	byName     map[string]*Topic
	byID       map[TopicID]*Topic
	partitions int
	onTopics   watchers      // who waits for topics to be made
	changes    atomic.Uint64 // of the topics
	deletions  atomic.Uint64 // of topics; a start counts as one
	flushed    uint64        // how many of them the database has on disk for sure; of the one who makes checkpoints
	image      atomic.Pointer[topicImage]

	ends    ends
	cleaner cleaner
	ids     producerIDs
	groups  *Groups
	txns    *Transactions
	size    atomic.Int64
	stop    chan struct{}
	stopped sync.WaitGroup

	interrupt   chan struct{} // closed by Interrupt
	interrupted sync.Once

	lagMu    sync.Mutex // guards lagWatch; outside of all others
	lagWatch lagWatch
}

// Open loads the topics from the metadata. Then, in this order: the journal's Recover, whose apply function hands KindMeta to the database and
// KindBatch to ApplyBatch; the journal's Start with the same function; and Start, which makes the broker take requests.
func Open(o Options) (*Broker, error) {
	o.setDefaults()
	if o.Journal == nil || o.KV == nil || o.FS == nil || o.Dir == "" {
		return nil, errors.New("broker: Journal, KV, FS and Dir are needed")
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("settings of the broker: %w", err)
	}
	b := &Broker{
		o: o, journal: o.Journal, kv: o.KV, log: o.Logger, clock: o.Clock,
		byName: map[string]*Topic{}, byID: map[TopicID]*Topic{},
		stop: make(chan struct{}), interrupt: make(chan struct{}),
	}
	logs, err := commitlog.NewManager(commitlog.ManagerOptions{
		FS: o.FS, Dir: o.Dir, Clock: o.Clock, Logger: o.Logger, MaxFiles: o.MaxOpenFiles,
	})
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.logs = logs
	b.deletions.Add(1)
	b.ends.init()
	if err := b.loadTopics(); err != nil {
		return nil, err
	}
	if err := b.loadAtomicUnits(); err != nil {
		return nil, err
	}
	b.journal.OnDurable(b.onDurable)
	return b, nil
}

const (
	metaEpoch = "broker/epoch"
	metaUnits = "broker/atomic-units"
)

// Start ends recovery and begins to serve: the journal must be recovered and started. Files that reach behind the journal's last unit are
// cut, the leader epoch goes up, and the loops for retention, the disk reserve and groups run until Close.
func (b *Broker) Start(ctx context.Context) error {
	if err := b.finishRecovery(); err != nil {
		return err
	}
	if err := b.loadStarts(ctx); err != nil {
		return fmt.Errorf("broker: load starts of partitions: %w", err)
	}
	if err := b.raiseEpoch(ctx); err != nil {
		return err
	}
	if err := b.ids.load(b); err != nil {
		return err
	}
	groups, err := newGroups(b)
	if err != nil {
		return err
	}
	b.groups = groups
	if b.txns, err = newTransactions(b); err != nil {
		return err
	}
	b.registerMetrics()
	b.running.Store(true)
	b.txns.start()
	b.checkReserve()
	b.every(time.Second, b.checkReserve)
	b.every(b.o.RetentionInterval, b.retainAll)
	b.cleaner.register(b)
	b.every(b.o.CompactionInterval, b.compactInBackground)
	b.every(10*time.Minute, b.groups.expireOffsets)
	b.every(lagInterval, b.watchLags)
	return nil
}

// raiseEpoch gives this start a leader epoch of its own (KIP-320), so that clients notice that they must check their position.
func (b *Broker) raiseEpoch(ctx context.Context) error {
	raw, ok, err := b.kv.GetMeta(metaEpoch)
	if err != nil {
		return fmt.Errorf("broker: read leader epoch: %w", err)
	}
	epoch := int32(0)
	if ok {
		if err := json.Unmarshal(raw, &epoch); err != nil {
			return fmt.Errorf("broker: stored leader epoch is malformed: %w", err)
		}
		epoch++
	}
	raw, err = json.Marshal(epoch)
	if err != nil {
		return err
	}
	b.epoch = epoch
	return b.commitMeta(ctx, map[string][]byte{metaEpoch: raw})
}

// commitMeta makes metadata durable; a nil value deletes the key.
func (b *Broker) commitMeta(ctx context.Context, entries map[string][]byte) error {
	lsn, err := b.journal.Commit(metaUnit(entries), nil)
	if err != nil {
		return err
	}
	return b.journal.Wait(ctx, lsn)
}

// orderMeta is commitMeta for those who need not wait: what comes later in the journal is durable later.
func (b *Broker) orderMeta(entries map[string][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	_, err := b.journal.Commit(metaUnit(entries), nil)
	return err
}

func metaUnit(entries map[string][]byte) *journal.Unit {
	u := journal.NewUnit()
	for k, v := range entries {
		kv.AppendMeta(u, k, v)
	}
	return u
}

// every runs fn each interval, in one goroutine, until Close.
func (b *Broker) every(interval time.Duration, fn func()) {
	b.stopped.Go(func() {
		for {
			t := b.clock.NewTimer(interval)
			select {
			case <-b.stop:
				t.Stop()
				return
			case <-t.C():
				fn()
			}
		}
	})
}

// Close stops the loops and closes the files. The journal, closed by its owner, must take no more batches by then.
func (b *Broker) Close() error {
	if !b.closed.CompareAndSwap(false, true) {
		return nil
	}
	close(b.stop)
	b.stopped.Wait()
	if b.txns != nil {
		b.txns.close()
	}
	if b.groups != nil {
		b.groups.close()
	}
	return b.logs.Close()
}

// LeaderEpoch is the epoch of this start, the same for all partitions.
func (b *Broker) LeaderEpoch() int32 { return b.epoch }

// StorageLow reports whether the disk is nearly full: doors refuse to produce, and sources pause until it is false again.
func (b *Broker) StorageLow() bool { return b.low.Load() }

// Dir is the folder of partition files.
func (b *Broker) Dir() string { return b.o.Dir }

// DiskSpace returns the bytes of the disk below Dir, and how many are free; -1 if that is not known.
func (b *Broker) DiskSpace() (total, usable int64) {
	usage, err := b.o.FS.GetDiskUsage(b.o.Dir)
	if err != nil {
		return -1, -1
	}
	return int64(min(usage.TotalBytes, 1<<62)), int64(min(usage.AvailBytes, 1<<62))
}

// MetadataEnd is the end of what is durable of the journal, which is where the node's metadata is.
func (b *Broker) MetadataEnd() int64 { return int64(b.journal.Durable()) }

// TopicDefault returns the value of a topic setting where a topic has none, and whether the node was told so.
func (b *Broker) TopicDefault(name string) (value string, told bool) {
	if v, ok := b.o.TopicDefaults[name]; ok {
		return v, true
	}
	def, _ := topicConfig(name)
	return def.Default, false
}

// Bounds and ages that the node was started with, for those who describe it.
func (b *Broker) Bounds() Bounds {
	o := &b.o
	return Bounds{
		MaxPartitions: o.MaxPartitions, MaxGroupSize: o.MaxGroupSize, OffsetsRetention: o.OffsetsRetention, ProducerExpiry: o.ProducerExpiry,
		RetentionInterval: o.RetentionInterval, InitialRebalanceDelay: o.InitialRebalanceDelay, MinSession: o.MinSessionTimeout,
		MaxSession: o.MaxSessionTimeout, ConsumerSession: o.ConsumerSessionTimeout, ConsumerHeartbeat: o.ConsumerHeartbeat,
		ConsumerAssignment: o.ConsumerAssignment, ConsumerMinSession: o.ConsumerMinSession, ConsumerMaxSession: o.ConsumerMaxSession,
		ConsumerMinHeartbeat: o.ConsumerMinHeartbeat, ConsumerMaxHeartbeat: o.ConsumerMaxHeartbeat,
		ConsumerMinAssignment: o.ConsumerMinAssignment, ConsumerMaxAssignment: o.ConsumerMaxAssignment,
		TransactionMaxTimeout: o.TransactionMaxTimeout, TransactionalIDExpiry: o.TransactionalIDExpiry,
	}
}

// Bounds is a part of the Options.
type Bounds struct {
	MaxPartitions, MaxGroupSize                         int
	OffsetsRetention, ProducerExpiry, RetentionInterval time.Duration
	InitialRebalanceDelay, MinSession, MaxSession       time.Duration
	ConsumerSession, ConsumerHeartbeat                  time.Duration
	ConsumerAssignment                                  time.Duration
	ConsumerMinSession, ConsumerMaxSession              time.Duration
	ConsumerMinHeartbeat, ConsumerMaxHeartbeat          time.Duration
	ConsumerMinAssignment, ConsumerMaxAssignment        time.Duration
	TransactionMaxTimeout, TransactionalIDExpiry        time.Duration
}

// AutoCreates reports whether topics are made when clients ask for them.
func (b *Broker) AutoCreates() bool { return b.o.AutoCreate }

// DefaultPartitions is the number of partitions of a topic made without saying how many.
func (b *Broker) DefaultPartitions() int32 { return b.o.DefaultPartitions }

// Wait returns when the unit at lsn is durable and applied.
func (b *Broker) Wait(ctx context.Context, lsn journal.LSN) error { return b.journal.Wait(ctx, lsn) }

// Durable is the LSN of the last unit that Wait returns for at once.
func (b *Broker) Durable() journal.LSN { return b.journal.Durable() }
