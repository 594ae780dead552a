package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/record"
)

// Bounds of what a client can make the node keep.
const (
	maxTransactions       = 100_000
	maxTransactionalIDLen = 2048
	maxPendingOffsets     = 50_000 // of one transaction
)

// Transactions runs the transactional ids: the pure coordinator of package txn, one state for each id, with timers and durable metadata around it.
//
// The end of a transaction is one journal unit: the markers of all its partitions, the offsets, and the coordinator's state.
type Transactions struct {
	b *Broker

	registry[*txnShell]
	byProducer map[int64]*txnShell // under mu; the current one of each id
}

// txnShell is one transactional id. Its lock is held while the journal takes a unit, never while one is waited for; so what a transaction writes is
// ordered before its end, or refused. It is taken before a group's.
type txnShell struct {
	id string

	mu        sync.Mutex
	t         *txn.Transaction
	pending   map[string][]Offset // committed in the transaction, by group
	offsets   int                 // how many these are
	persisted journal.LSN         // the last unit that a reply may depend on
	stored    bool
	gone      bool // expired; look again in Transactions.byID
	timer     clock.Timer
	armed     time.Time // when the timer fires; zero: it does not
	said      time.Time // of the last log line about a transaction that takes long
}

// Transactions are stored under "txn/" id, and the offsets that are committed in one under "txn-offset/" id NUL group NUL topic NUL partition.
const (
	txnPrefix       = "txn/"
	txnOffsetPrefix = "txn-offset/"
)

func txnOffsetKey(id string, groupID, topic string, partition int32) string {
	return txnOffsetPrefix + id + "\x00" + strings.TrimPrefix(offsetKey(groupID, topic, partition), offsetPrefix)
}

// Transactions returns the coordinator of all transactional ids.
func (b *Broker) Transactions() *Transactions { return b.txns }

func newTransactions(b *Broker) (*Transactions, error) {
	ts := &Transactions{b: b, registry: registry[*txnShell]{byID: map[string]*txnShell{}}, byProducer: map[int64]*txnShell{}}
	err := b.kv.ScanMeta(txnPrefix, func(key string, value []byte) error {
		id := strings.TrimPrefix(key, txnPrefix)
		t, err := txn.Restore(value)
		if err != nil {
			return fmt.Errorf("transactional id %q: %w", clip(id), err)
		}
		s := &txnShell{id: id, t: t, stored: true}
		ts.byID[id] = s
		ts.byProducer[t.Describe().ProducerID] = s
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("broker: load transactions: %w", err)
	}
	stale := map[string][]byte{}
	err = b.kv.ScanMeta(txnOffsetPrefix, func(key string, value []byte) error {
		id, rest, _ := strings.Cut(strings.TrimPrefix(key, txnOffsetPrefix), "\x00")
		groupID, topic, partition, err := parseOffsetKey(offsetPrefix + rest)
		if err != nil {
			return err
		}
		c, err := decodeCommitted(value)
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		if _, ok := b.Topic(topic); !ok { // deleted, and the node ended before this was forgotten
			stale[key] = nil
			return nil
		}
		s := ts.byID[id]
		if s == nil {
			return fmt.Errorf("metadata key %q: the transaction is missing", key)
		}
		return b.groups.hold(groupID, s, []Offset{{Topic: topic, Partition: partition, Offset: c.offset, LeaderEpoch: c.leaderEpoch, Metadata: c.metadata}})
	})
	if err == nil {
		err = b.orderMeta(stale)
	}
	if err != nil {
		return nil, fmt.Errorf("broker: load the offsets of transactions: %w", err)
	}
	for _, s := range ts.byID {
		d := s.t.Describe()
		for _, place := range d.Partitions {
			p := ts.partition(place)
			if p == nil {
				continue
			}
			if err := b.restoreOpen(p); err != nil {
				b.log.Error("a partition in an open transaction cannot be read", "partition", p.String(), "err", err)
			}
		}
	}
	return ts, nil
}

// start sets the timers. What timed out while the node was down is aborted at once.
func (ts *Transactions) start() {
	for _, s := range ts.all() {
		s.mu.Lock()
		ts.arm(s, s.t.Wake())
		s.mu.Unlock()
	}
	ts.b.every(10*time.Minute, ts.expire)
	ts.b.every(longTransaction/2, ts.complain)
}

func (ts *Transactions) partition(place txn.Partition) *Partition {
	t, ok := ts.b.TopicByID(place.Topic)
	if !ok {
		return nil
	}
	return t.Partition(place.Index)
}

// CheckTransactionalID refuses ids that cannot be kept.
func CheckTransactionalID(id string) error {
	return checkID(id, maxTransactionalIDLen, ErrInvalidTransactionalID)
}

// locked returns the transactional id with its lock held, or nil. With create it is made if need be.
func (ts *Transactions) locked(id string, create bool) (*txnShell, error) {
	if err := CheckTransactionalID(id); err != nil {
		return nil, err
	}
	if !create {
		return ts.registry.locked(id, nil)
	}
	return ts.registry.locked(id, func() (*txnShell, error) {
		if len(ts.byID) >= maxTransactions {
			return nil, ErrTooManyTransactions
		}
		s := &txnShell{id: id, t: txn.New(ts.b.clock.Now())}
		ts.byID[id] = s
		return s, nil
	})
}

func (s *txnShell) guard() (*sync.Mutex, *bool) { return &s.mu, &s.gone }

// step runs one event and orders what has to be stored; the lock is held. When the journal does not take it, nothing has happened. The caller gives the lock
// up, waits for the returned unit, and then calls settle with what ended.
func (ts *Transactions) step(s *txnShell, ev txn.Event) (txn.Output, *ended, error) {
	before := s.t.Copy()
	out := s.t.Step(ts.b.clock.Now(), ev)
	e, err := ts.persist(s, before, &out)
	ts.arm(s, out.Wake)
	return out, e, err
}

// ended is a transaction whose end is ordered and not yet durable.
type ended struct {
	lsn  journal.LSN
	held map[string]heldOffsets // by group
}

// heldOffsets are those of a group that a transaction held.
type heldOffsets struct {
	offsets []Offset
	flight  *flight // those that now count; nil: they are forgotten
}

func (ts *Transactions) persist(s *txnShell, before *txn.Transaction, out *txn.Output) (*ended, error) {
	if !out.Persist {
		return nil, nil
	}
	u := ts.b.NewUnit()
	u.AddMeta(txnPrefix+s.id, s.t.Snapshot())
	var e *ended
	if out.Ended != nil {
		e = &ended{held: make(map[string]heldOffsets, len(s.pending))}
		for groupID, offsets := range s.pending {
			h := heldOffsets{offsets: offsets}
			if out.Ended.Commit {
				h.flight = &flight{offsets: ts.b.groups.standing(offsets)}
			}
			e.held[groupID] = h
		}
		if err := ts.end(s, u, out.Ended, e); err != nil {
			u.Free()
			s.t = before
			return nil, err
		}
	}
	lsn, _, err := u.Commit(context.Background())
	if err != nil {
		s.t = before
		return nil, err
	}
	s.persisted, s.stored = lsn, true
	if was := before.Describe().ProducerID; was != out.ProducerID {
		ts.mu.Lock()
		delete(ts.byProducer, was) // used up: its last transaction has ended, at the latest with this
		ts.byProducer[out.ProducerID] = s
		ts.mu.Unlock()
	}
	if e != nil {
		for groupID, h := range e.held {
			if h.flight != nil {
				ts.b.groups.depart(groupID, h.flight)
			}
		}
		e.lsn, s.pending, s.offsets = lsn, nil, 0
	}
	return e, nil
}

// end puts the end of a transaction into the unit: a marker for each partition, and the offsets, which are committed, or deleted where they wait.
func (ts *Transactions) end(s *txnShell, u *Unit, x *txn.Ended, e *ended) error {
	now := ts.b.clock.Now().UnixMilli()
	var batch []byte
	for _, place := range x.Partitions {
		p := ts.partition(place)
		if p == nil || p.Err() != nil { // deleted, or damaged: then nobody reads it
			continue
		}
		m := record.EndMarker{ProducerID: x.ProducerID, ProducerEpoch: x.Epoch, Commit: x.Commit, Timestamp: now}
		var err error
		if batch, err = ts.b.addMarker(u, p, &m, batch); err != nil {
			return err
		}
	}
	for groupID, h := range e.held {
		for i := range h.offsets {
			u.AddMeta(txnOffsetKey(s.id, groupID, h.offsets[i].Topic, h.offsets[i].Partition), nil)
		}
		if h.flight == nil {
			continue
		}
		for i := range h.flight.offsets {
			o := &h.flight.offsets[i]
			u.AddMeta(offsetKey(groupID, o.Topic, o.Partition), o.committed(now).encode())
		}
	}
	return nil
}

func (o *Offset) committed(ms int64) committed {
	return committed{offset: o.Offset, leaderEpoch: o.LeaderEpoch, metadata: o.Metadata, ms: ms}
}

// addMarker puts a marker into the unit. Nothing more of its producer's transaction may be ordered in the partition before the unit is. The buffer is
// used again.
func (b *Broker) addMarker(u *Unit, p *Partition, m *record.EndMarker, buf []byte) ([]byte, error) {
	ps, err := p.log.Producers()
	if err != nil {
		err = p.judge(err)
		if p.Err() != nil {
			return buf, nil // damaged: nobody reads it
		}
		return buf, err
	}
	m.First, _ = ps.Open(m.ProducerID)
	buf = m.AppendTo(buf[:0])
	ref, err := u.AddBatch(p, buf)
	if err != nil {
		return buf, err
	}
	now := b.clock.Now().UnixMilli()
	u.OnOrder(func(journal.LSN) {
		ub := &u.batches[ref]
		if h, err := record.ParseHeader(ub.payload[payloadHeader:]); err == nil && ub.payload[1]&flagVoid == 0 {
			ps.Update(&h, now)
		}
	})
	return buf, nil
}

// settle waits until the end of a transaction is durable, and lets its offsets count.
func (ts *Transactions) settle(e *ended) error {
	if e == nil {
		return nil
	}
	if err := ts.b.journal.Wait(context.Background(), e.lsn); err != nil {
		return err
	}
	for groupID, held := range e.held {
		ts.b.groups.release(groupID, held, e)
	}
	return nil
}

// topicDeleted forgets the offsets in a deleted topic that transactions hold. After it none is ordered any more, and those that are on their way are the
// groups' to forget.
func (ts *Transactions) topicDeleted(topic string) {
	in := func(o Offset) bool { return o.Topic == topic }
	for _, s := range ts.all() {
		s.mu.Lock()
		stale := map[string][]byte{}
		for groupID, offsets := range s.pending {
			var gone, kept []Offset
			for _, o := range offsets {
				if in(o) {
					gone = append(gone, o)
					stale[txnOffsetKey(s.id, groupID, o.Topic, o.Partition)] = nil
				} else {
					kept = append(kept, o)
				}
			}
			s.offsets -= len(gone)
			s.pending[groupID] = kept // also if none is left: the group is held until the end
			ts.b.groups.letGo(groupID, gone)
		}
		_ = ts.b.orderMeta(stale) // a journal that has failed ends the process
		s.mu.Unlock()
	}
}

// finish gives up the lock and waits for what a reply promises.
func (ts *Transactions) finish(ctx context.Context, s *txnShell, e *ended) error {
	lsn := s.persisted
	s.mu.Unlock()
	if err := ts.settle(e); err != nil {
		return err
	}
	if lsn > ts.b.journal.Durable() {
		return ts.b.journal.Wait(ctx, lsn)
	}
	return nil
}

// do runs one event, gives up the lock, and waits for what the reply promises.
func (ts *Transactions) do(ctx context.Context, s *txnShell, ev txn.Event) (txn.Output, error) {
	out, e, err := ts.step(s, ev)
	if err != nil {
		s.mu.Unlock()
		return out, err
	}
	return out, ts.finish(ctx, s, e)
}

// withProducerID returns the transactional id with its lock held, and an id for a producer if it may need one.
func (ts *Transactions) withProducerID(ctx context.Context, id string, create bool) (s *txnShell, newID int64, err error) {
	for newID = -1; ; {
		if s, err = ts.locked(id, create); err != nil || s == nil || newID >= 0 || !s.t.NeedsProducerID() {
			return s, newID, err
		}
		s.mu.Unlock()
		if newID, err = ts.b.ProducerID(ctx); err != nil {
			return nil, -1, err
		}
	}
}

// Init starts a producer: what its predecessor has left open is aborted, and the predecessor is fenced. The event's MaxTimeout and NewProducerID are
// set here.
func (ts *Transactions) Init(ctx context.Context, id string, ev txn.Init) (txn.Output, error) {
	ev.MaxTimeout = ts.b.o.TransactionMaxTimeout
	if ev.Timeout <= 0 || ev.Timeout > ev.MaxTimeout {
		return txn.Output{Code: txn.InvalidTransactionTimeout}, CheckTransactionalID(id) // nothing is made for it
	}
	s, newID, err := ts.withProducerID(ctx, id, true)
	if err != nil {
		return txn.Output{}, err
	}
	ev.NewProducerID = newID
	return ts.do(ctx, s, ev)
}

// End commits or aborts. The event's NewProducerID is set here.
func (ts *Transactions) End(ctx context.Context, id string, ev txn.End) (txn.Output, error) {
	s, newID, err := ts.withProducerID(ctx, id, false)
	if err != nil || s == nil {
		return txn.Output{Code: txn.InvalidProducerIDMapping}, err
	}
	ev.NewProducerID = newID
	return ts.do(ctx, s, ev)
}

// Add makes partitions, and groups whose offsets will be committed, part of the transaction.
func (ts *Transactions) Add(ctx context.Context, id string, ev txn.Add) (txn.Code, error) {
	for _, g := range ev.Groups {
		if err := CheckGroupID(g); err != nil {
			return 0, err
		}
	}
	s, err := ts.locked(id, false)
	if err != nil || s == nil {
		return txn.InvalidProducerIDMapping, err
	}
	out, err := ts.do(ctx, s, ev)
	return out.Code, err
}

// Place names the partition to the coordinator.
func (p *Partition) Place() txn.Partition { return txn.Partition{Topic: p.Topic().ID, Index: p.Index} }

// Transactional reports whether transactions may write to the topic; a table's may not: its own statements are transactions.
func (t *Topic) Transactional() bool { return t.check.Load() == nil }

// Produce is Broker.Produce for a request with a transactional id: its transactional batches must belong to the ongoing transaction. With implicit their
// partitions become part of it, and it begins if need be.
func (ts *Transactions) Produce(id string, implicit bool, items []ProduceItem) journal.LSN {
	refuse := func(err error) journal.LSN {
		for i := range items {
			if items[i].Err == nil {
				items[i].Err = err
			}
		}
		return ts.b.Produce(items)
	}
	s, err := ts.locked(id, false)
	switch {
	case err != nil:
		return refuse(err)
	case s == nil:
		return refuse(fmt.Errorf("%w: %q", ErrUnknownProducer, clip(id)))
	}
	defer s.mu.Unlock()
	add := txn.Add{VerifyOnly: !implicit, ProducerID: -1, Epoch: -1}
	var places [1]txn.Partition
	add.Partitions = places[:0]
	for i := range items {
		it := &items[i]
		if it.Err != nil {
			continue
		}
		h, err := record.ParseHeader(it.Batch)
		if err != nil || !h.Transactional() {
			continue // judged by whoever looks closer
		}
		if add.ProducerID < 0 {
			add.ProducerID, add.Epoch = h.ProducerID, h.ProducerEpoch
		}
		switch {
		case h.ProducerID != add.ProducerID || h.ProducerEpoch != add.Epoch:
			it.Err = fmt.Errorf("%w: batches of two producers in one transaction", ErrInvalidBatch)
		case !it.P.Topic().Transactional():
			it.Err = fmt.Errorf("%w: %q", ErrTableTransaction, it.P.Topic().Name)
		default:
			it.transactional = true
			if place := it.P.Place(); !s.t.Has(h.ProducerID, h.ProducerEpoch, place) {
				add.Partitions = append(add.Partitions, place)
			}
		}
	}
	if len(add.Partitions) == 0 { // all are part of it
		return ts.b.Produce(items)
	}
	out, _, err := ts.step(s, add)
	if err == nil && out.Code != txn.OK {
		err = transactionError(out.Code, id, add.ProducerID, add.Epoch)
	}
	if err == nil {
		return ts.b.Produce(items)
	}
	for i := range items {
		it := &items[i]
		if !it.transactional || it.Err != nil {
			continue
		}
		// A partition that is not part of it does not keep the others out.
		if errors.Is(err, ErrNotInTransaction) && s.t.Has(add.ProducerID, add.Epoch, it.P.Place()) {
			continue
		}
		it.Err = err
	}
	return ts.b.Produce(items)
}

// transactionError says in words why a batch is refused.
func transactionError(code txn.Code, id string, producer int64, epoch int16) error {
	cause := ErrTransactionState
	switch code {
	case txn.InvalidProducerIDMapping:
		cause = ErrUnknownProducer
	case txn.ProducerFenced:
		cause = ErrFenced
	case txn.NotInTransaction:
		cause = ErrNotInTransaction
	}
	return fmt.Errorf("%w: transactional id %q, producer %d, epoch %d", cause, clip(id), producer, epoch)
}

// CommitOffsets keeps offsets that count when the transaction is committed. With implicit the group becomes part of it, and it begins if need be. The code is
// the coordinator's; what the group says is in the second one.
func (ts *Transactions) CommitOffsets(ctx context.Context, id string, producer int64, epoch int16, groupID string, implicit bool, who Committer, offsets []Offset) (txn.Code, int16, error) {
	if err := CheckGroupID(groupID); err != nil {
		return 0, 0, err
	}
	s, err := ts.locked(id, false)
	if err != nil || s == nil {
		return txn.InvalidProducerIDMapping, 0, err
	}
	if s.offsets+len(offsets) > maxPendingOffsets {
		s.mu.Unlock()
		return 0, 0, fmt.Errorf("%w: %q", ErrTooManyOffsets, clip(id))
	}
	add := txn.Add{ProducerID: producer, Epoch: epoch, Groups: []string{groupID}, VerifyOnly: true}
	code := s.t.Step(ts.b.clock.Now(), add).Code
	if code != txn.OK && !(code == txn.NotInTransaction && implicit) {
		s.mu.Unlock()
		return code, 0, nil
	}
	// The group is asked first: a member that is fenced begins no transaction.
	refused, err := ts.b.groups.mayHold(groupID, who, offsets)
	offsets = ts.b.groups.standing(offsets)
	if err != nil || refused != 0 || len(offsets) == 0 {
		s.mu.Unlock()
		return txn.OK, int16(refused), err
	}
	if code == txn.NotInTransaction {
		add.VerifyOnly = false
		if _, _, err := ts.step(s, add); err != nil {
			s.mu.Unlock()
			return 0, 0, err
		}
	}
	u := ts.b.NewUnit()
	now := ts.b.clock.Now().UnixMilli()
	for i := range offsets {
		o := &offsets[i]
		u.AddMeta(txnOffsetKey(id, groupID, o.Topic, o.Partition), o.committed(now).encode())
	}
	lsn, _, err := u.Commit(ctx)
	if err == nil {
		s.persisted = lsn
		err = ts.b.groups.hold(groupID, s, offsets)
	}
	if err != nil {
		s.mu.Unlock()
		return 0, 0, err
	}
	return txn.OK, 0, ts.finish(ctx, s, nil)
}

// arm makes the timer fire at wake or before.
func (ts *Transactions) arm(s *txnShell, wake time.Time) {
	if wake.IsZero() || !s.armed.IsZero() && !wake.Before(s.armed) {
		return
	}
	s.armed = wake
	d := max(wake.Sub(ts.b.clock.Now()), 0)
	if s.timer == nil {
		s.timer = ts.b.clock.AfterFunc(d, func() { ts.fire(s) })
		return
	}
	s.timer.Reset(d)
}

// retryAbort is how soon the abort of a transaction is tried again that the journal had no room for.
const retryAbort = time.Second

// fire aborts a transaction that has timed out.
func (ts *Transactions) fire(s *txnShell) {
	s.mu.Lock()
	s.armed = time.Time{}
	if s.gone {
		s.mu.Unlock()
		return
	}
	out, e, err := ts.step(s, txn.Tick{})
	if err != nil && ts.b.journal.Err() == nil {
		s.armed = time.Time{}
		ts.arm(s, ts.b.clock.Now().Add(retryAbort))
	}
	s.mu.Unlock()
	if e == nil {
		return
	}
	ts.b.log.Warn("a transaction took longer than its timeout and is aborted", "transactional_id", clip(s.id), "producer", out.Ended.ProducerID)
	_ = ts.settle(e) // after an error the journal has ended, and the node with it
}

// Abort ends a producer's transaction in a partition from outside, and with it the whole transaction, and fences the producer.
func (ts *Transactions) Abort(ctx context.Context, producer int64, epoch int16, p *Partition) error {
	ts.mu.RLock()
	s := ts.byProducer[producer]
	ts.mu.RUnlock()
	if s != nil {
		s.mu.Lock()
		d := s.t.Describe()
		if d.ProducerID == producer && d.State == txn.Ongoing && slices.Contains(d.Partitions, p.Place()) {
			if epoch < d.Epoch {
				s.mu.Unlock()
				return fmt.Errorf("%w: producer %d, epoch %d, %s", ErrFenced, producer, epoch, p)
			}
			before := s.t.Copy()
			out := s.t.Abort(ts.b.clock.Now())
			e, err := ts.persist(s, before, &out)
			if err != nil {
				s.mu.Unlock()
				return err
			}
			ts.b.log.Warn("a transaction is aborted on request", "transactional_id", clip(s.id), "producer", producer, "partition", p.String())
			return ts.finish(ctx, s, e)
		}
		s.mu.Unlock()
	}
	// No coordinator knows it: only this partition does.
	ps, err := p.log.Producers()
	if err != nil {
		return p.judge(err)
	}
	if _, ok := ps.Open(producer); !ok {
		return fmt.Errorf("%w: producer %d has no transaction open in %s", ErrTransactionState, producer, p)
	}
	u := ts.b.NewUnit()
	m := record.EndMarker{ProducerID: producer, ProducerEpoch: epoch, Timestamp: ts.b.clock.Now().UnixMilli()}
	if _, err := ts.b.addMarker(u, p, &m, nil); err != nil {
		u.Free()
		return err
	}
	lsn, _, err := u.Commit(ctx)
	if err != nil {
		return err
	}
	return ts.b.Wait(ctx, lsn)
}

// TransactionInfo describes a transactional id to administrators.
type TransactionInfo struct {
	ID string
	txn.Described
}

// Describe returns what there is to know of a transactional id; ok is false if it does not exist.
func (ts *Transactions) Describe(id string) (info TransactionInfo, ok bool, err error) {
	s, err := ts.locked(id, false)
	if err != nil || s == nil {
		return TransactionInfo{}, false, err
	}
	defer s.mu.Unlock()
	return s.info(), true, nil
}

func (s *txnShell) info() TransactionInfo {
	d := s.t.Describe()
	d.Partitions, d.Groups = slices.Clone(d.Partitions), slices.Clone(d.Groups)
	return TransactionInfo{ID: s.id, Described: d}
}

// List describes all transactional ids, by id.
func (ts *Transactions) List() []TransactionInfo {
	var out []TransactionInfo
	for _, s := range ts.all() {
		s.mu.Lock()
		if !s.gone && !s.t.NeverUsed() {
			out = append(out, s.info())
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b TransactionInfo) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// ofProducer names the transactional id of a producer, and when its transaction began.
func (ts *Transactions) ofProducer(id int64) (transactional string, since time.Time) {
	if ts == nil {
		return "", time.Time{}
	}
	ts.mu.RLock()
	s := ts.byProducer[id]
	ts.mu.RUnlock()
	if s == nil {
		return "", time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id, s.t.Describe().Started
}

// open is how many transactions are ongoing, and since when the oldest.
func (ts *Transactions) open() (n int, oldest time.Time) {
	for _, s := range ts.all() {
		s.mu.Lock()
		if d := s.t.Describe(); d.State == txn.Ongoing {
			n++
			if oldest.IsZero() || d.Started.Before(oldest) {
				oldest = d.Started
			}
		}
		s.mu.Unlock()
	}
	return n, oldest
}

// longTransaction is how long a transaction may be open until a log line says that it holds readers back.
const longTransaction = 10 * time.Second

// complain names the transactions that have been open for long, each once a minute at most.
func (ts *Transactions) complain() {
	now := ts.b.clock.Now()
	for _, s := range ts.all() {
		s.mu.Lock()
		d := s.t.Describe()
		if d.State == txn.Ongoing && now.Sub(d.Started) > longTransaction && now.Sub(s.said) > time.Minute {
			s.said = now
			held := ""
			if len(d.Partitions) > 0 {
				if p := ts.partition(d.Partitions[0]); p != nil {
					held = p.String()
				}
			}
			ts.b.log.Warn("an open transaction holds back who reads committed records, views among them", "transactional_id", clip(s.id),
				"producer", d.ProducerID, "age", now.Sub(d.Started).Round(time.Second).String(), "timeout", d.Timeout.String(), "partitions", len(d.Partitions), "first_partition", held)
		}
		s.mu.Unlock()
	}
}

// expire forgets transactional ids that nobody has used for long.
func (ts *Transactions) expire() {
	now := ts.b.clock.Now()
	for _, s := range ts.all() {
		s.mu.Lock()
		d := s.t.Describe()
		if s.gone || d.State == txn.Ongoing || now.Sub(d.Updated) < ts.b.o.TransactionalIDExpiry {
			s.mu.Unlock()
			continue
		}
		if s.stored {
			u := ts.b.NewUnit()
			u.AddMeta(txnPrefix+s.id, nil)
			if _, _, err := u.Commit(context.Background()); err != nil {
				s.mu.Unlock()
				break
			}
		}
		s.gone = true
		if s.timer != nil {
			s.timer.Stop()
		}
		ts.mu.Lock()
		delete(ts.byID, s.id)
		if ts.byProducer[d.ProducerID] == s {
			delete(ts.byProducer, d.ProducerID)
		}
		ts.mu.Unlock()
		s.mu.Unlock()
	}
}

// close stops the timers.
func (ts *Transactions) close() {
	ts.mu.Lock()
	ts.closed = true
	ts.mu.Unlock()
	for _, s := range ts.all() {
		s.mu.Lock()
		s.gone = true
		if s.timer != nil {
			s.timer.Stop()
		}
		s.mu.Unlock()
	}
}
