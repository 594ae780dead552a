package session

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector/jsonrow"
	"github.com/leat-io/leat/internal/job"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/rowenc"
)

// writer is one table's: who writes to it, and the rows that are in its topic but not in a published epoch yet.
type writer struct {
	id     uint64
	holder *tx      // under lockTable.mu, as queue
	queue  []waiter // who waits, first come first served

	// The rest belongs to the holder.
	overlay map[string]unpublished // by key, as rowenc encodes it
	order   []written              // the overlay's entries in the order of their offsets
	bytes   int                    // of these
	// known is how far, in each partition of the topic, every record is in the overlay or was in a published epoch. What is behind it was
	// written by a Kafka client, or before the node was started.
	known []int64
}

// unpublished is a row as it was last written; row is nil if it was deleted.
type unpublished struct {
	row []byte
	at  place
}

type place struct {
	partition int32
	offset    int64
}

type written struct {
	key  string
	at   place
	size int
}

func newWriter(id uint64) *writer { return &writer{id: id, overlay: map[string]unpublished{}} }

// trim forgets the rows that a snapshot taken from now on has.
func (w *writer) trim(committed func(partition int32) int64) {
	n := 0
	for n < len(w.order) && w.order[n].at.offset < committed(w.order[n].at.partition) {
		if u, ok := w.overlay[w.order[n].key]; ok && u.at == w.order[n].at {
			delete(w.overlay, w.order[n].key)
		}
		w.bytes -= w.order[n].size
		n++
	}
	w.order = w.order[n:]
	if len(w.order) == 0 {
		w.order = nil
	}
}

// unseen are the positions that the published epochs must have reached before the table is read: where the topic ends, if others have written
// to it.
func (w *writer) unseen(topic *broker.Topic) []job.Position {
	var out []job.Position
	for p, part := range topic.Partitions() {
		if p == len(w.known) {
			w.known = append(w.known, 0)
		}
		if end := part.Appended(); end > w.known[p] {
			out = append(out, job.Position{Relation: w.id, Partition: p, Offset: end})
		}
	}
	return out
}

// saw notes that the published epochs have reached the positions.
func (w *writer) saw(positions []job.Position) {
	for _, p := range positions {
		w.known[p.Partition] = max(w.known[p.Partition], p.Offset)
	}
}

// wrote notes n records of its own. Those of others before them stay unknown.
func (w *writer) wrote(p int32, offset int64, n int) {
	if int(p) < len(w.known) && w.known[p] == offset {
		w.known[p] += int64(n)
	}
}

// maxUnpublished is how many bytes of written rows a table may have that no published epoch has, before the next writer waits for one that does.
const maxUnpublished = 8 << 20

// tx is a transaction: the tables that it writes to, and what it will write.
type tx struct {
	began    time.Time
	readOnly bool
	tables   map[uint64]*txTable
	ordered  []*txTable // in the order in which they were first written
	bytes    int
	memory   *budget.Account // of what it will write
	implicit bool            // of a group of statements, not of BEGIN
	saves    []savepoint
	before   *settings // the session's as they were, once one of them has changed
}

// maxTransaction bounds what a transaction may write, in bytes.
const maxTransaction = 256 << 20

// txTable is one table in a transaction.
type txTable struct {
	w         *writer
	relation  *catalog.Relation
	topic     *broker.Topic
	types     []column.Type
	tableID   uint32
	published *job.Published    // what the statement reads; taken anew for each statement
	rows      map[string][]byte // by key; nil: deleted
	keys      *jsonrow.Encoder
	values    *jsonrow.Encoder
	records   []txRecord
	decoded   *column.Batch
}

type txRecord struct {
	partition  int32
	rowKey     string
	row        []byte // nil: deleted
	key, value []byte // as they go to the topic; value nil: a tombstone
	// before is what the transaction had written under the key before, if it had.
	before    []byte
	hadBefore bool
}

// open gives the transaction a table to write to, and a snapshot to read it from.
func (s *Session) open(ctx context.Context, t *tx, r *catalog.Relation, reads bool) (*txTable, error) {
	if t.readOnly {
		return nil, pgerr.New("25006", "cannot execute this statement in a read-only transaction")
	}
	tab := t.tables[r.ID]
	if tab == nil {
		w := s.e.writers.get(r.ID)
		if err := s.lock(ctx, w, t); err != nil {
			return nil, err
		}
		topic, ok := s.e.o.Broker.Topic(r.Topic)
		if !ok || s.e.o.Jobs.Catalog().Relation(r.ID) == nil {
			s.e.locks.release(w)
			return nil, pgerr.Newf("42P01", "relation \"%s\" does not exist", r.Name)
		}
		tab = &txTable{w: w, relation: r, topic: topic, rows: map[string][]byte{}}
		var names, keyNames []string
		for i := range r.Columns {
			tab.types = append(tab.types, r.Columns[i].Type)
			names = append(names, r.Columns[i].Name)
		}
		for _, k := range r.PrimaryKey {
			keyNames = append(keyNames, r.Columns[k].Name)
		}
		tab.values, tab.keys = jsonrow.NewTableEncoder(names), jsonrow.NewTableEncoder(keyNames)
		tab.decoded = column.NewBatch(tab.types, 1)
		id, err := rowsTable(r)
		if err != nil {
			s.e.locks.release(w)
			return nil, err
		}
		tab.tableID = id
		t.tables[r.ID] = tab
		t.ordered = append(t.ordered, tab)
	}
	if !reads && tab.w.bytes < maxUnpublished {
		return tab, nil
	}
	// What is committed is read before the snapshot is taken, so that the snapshot has all that the overlay forgets.
	committed := s.e.o.Jobs.Committed(r.ID)
	tab.release()
	unseen := tab.w.unseen(tab.topic)
	published, err := s.e.o.Jobs.Publish(ctx, unseen...)
	if err != nil {
		return nil, err
	}
	if err := s.e.o.Jobs.Readable(r.ID); err != nil { // dropped meanwhile: its rows are gone
		published.Release()
		return nil, err
	}
	tab.w.saw(unseen)
	tab.published = published
	tab.w.trim(func(p int32) int64 {
		reached := int64(0)
		if int(p) < len(committed) {
			reached = committed[p]
		}
		for _, u := range unseen {
			if u.Partition == int(p) {
				reached = max(reached, u.Offset) // a row of others may hide behind one of the overlay
			}
		}
		return reached
	})
	return tab, nil
}

// lock makes the transaction the table's writer, within lock_timeout.
func (s *Session) lock(ctx context.Context, w *writer, t *tx) error {
	if d := s.settings.lockTimeout; d > 0 {
		late := pgerr.New("55P03", "canceling statement due to lock timeout")
		limited, cancel := context.WithTimeoutCause(ctx, d, late)
		defer cancel()
		err := s.e.locks.acquire(limited, w, t)
		if err != nil && context.Cause(limited) == error(late) {
			return late
		}
		return err
	}
	return s.e.locks.acquire(ctx, w, t)
}

// rowsTable is the state table that holds the rows of a table or materialized view.
func rowsTable(r *catalog.Relation) (uint32, error) {
	if r.PlanError != nil {
		return 0, pgerr.Newf("55000", "%s \"%s\" cannot be read: %v", r.Kind, r.Name, r.PlanError)
	}
	if r.Plan != nil && len(r.Plan.Nodes) > 0 {
		root := r.Plan.Nodes[len(r.Plan.Nodes)-1]
		if (root.Materialize != nil || root.Upsert != nil) && len(root.Tables) > 0 {
			return root.Tables[0].ID, nil
		}
	}
	return 0, pgerr.Newf("XX000", "%s \"%s\" has no stored rows", r.Kind, r.Name)
}

func (t *txTable) release() {
	if t.published != nil {
		t.published.Release()
		t.published = nil
	}
}

// lookup returns the row with a key as the transaction sees it, nil if there is none.
func (t *txTable) lookup(key []byte) ([]byte, error) {
	if row, ok := t.rows[string(key)]; ok {
		return row, nil
	}
	if u, ok := t.w.overlay[string(key)]; ok {
		return u.row, nil
	}
	row, ok, err := t.published.Rows.Get(t.tableID, key, nil)
	if err != nil || !ok {
		return nil, err
	}
	return row, nil
}

// scan calls fn for each row that the transaction sees. fn must not keep the slices, nor write to the transaction.
func (t *txTable) scan(ctx context.Context, fn func(key, row []byte) error) error {
	err := scanRows(ctx, t.published.Rows, t.tableID, func(key, row []byte) error {
		if _, ok := t.rows[string(key)]; ok {
			return nil
		}
		if _, ok := t.w.overlay[string(key)]; ok {
			return nil
		}
		return fn(key, row)
	})
	if err != nil {
		return err
	}
	for key, u := range t.w.overlay {
		if _, ok := t.rows[key]; !ok && u.row != nil {
			if err := fn([]byte(key), u.row); err != nil {
				return err
			}
		}
	}
	for key, row := range t.rows {
		if row != nil {
			if err := fn([]byte(key), row); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanRows calls fn for each stored row of a table or view.
func scanRows(ctx context.Context, s *kv.Snapshot, table uint32, fn func(key, row []byte) error) error {
	it, err := s.ScanPrefix(table, nil)
	if err != nil {
		return err
	}
	defer it.Close()
	for n := 0; it.Next(); n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fn(it.Prefix(), it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}

// put makes row i of b, whose columns are the table's, the row with its key.
func (t *txTable) put(tr *tx, b *column.Batch, i int) error {
	key := rowenc.AppendKey(nil, b, t.relation.PrimaryKey, i)
	all := allColumns(len(b.Cols))
	row := rowenc.AppendRow(nil, b, all, i)
	rec := txRecord{rowKey: string(key), row: row, key: t.keys.Append(nil, t.keyVectors(b), i), value: t.values.Append(nil, b.Cols, i)}
	return t.write(tr, rec)
}

// remove deletes the row with the key of row i of b.
func (t *txTable) remove(tr *tx, b *column.Batch, i int) error {
	key := rowenc.AppendKey(nil, b, t.relation.PrimaryKey, i)
	return t.write(tr, txRecord{rowKey: string(key), key: t.keys.Append(nil, t.keyVectors(b), i)})
}

func (t *txTable) keyVectors(b *column.Batch) []*column.Vector {
	out := make([]*column.Vector, len(t.relation.PrimaryKey))
	for i, c := range t.relation.PrimaryKey {
		out[i] = b.Cols[c]
	}
	return out
}

func (t *txTable) write(tr *tx, rec txRecord) error {
	size := len(rec.key) + len(rec.value) + len(rec.row) + 128
	if tr.bytes += size; tr.bytes > maxTransaction {
		return pgerr.Newf("54000", "the transaction writes more than %d MB", maxTransaction>>20).
			WithHint("Write in several transactions, or produce the rows into a topic.")
	}
	if err := tr.memory.Take(int64(held(&rec))); err != nil {
		return err
	}
	if limit := t.maxRecord(); len(rec.key)+len(rec.value) > limit {
		return pgerr.Newf("54000", "a row of table \"%s\" is %d bytes as a record, more than the %d that its topic takes", t.relation.Name, len(rec.key)+len(rec.value), limit)
	}
	rec.partition = record.Partition(rec.key, len(t.topic.Partitions()))
	rec.before, rec.hadBefore = t.rows[rec.rowKey]
	t.rows[rec.rowKey] = rec.row
	t.records = append(t.records, rec)
	return nil
}

// held is what a record of a transaction holds until it is committed: itself, its row, and both once more in the unit that commits it.
func held(r *txRecord) int { return 2*(len(r.key)+len(r.value)) + len(r.row) + 2*len(r.rowKey) + 256 }

// undo forgets all records but the first n.
func (t *txTable) undo(tr *tx, n int) {
	for i := len(t.records) - 1; i >= n; i-- {
		tr.memory.Give(int64(held(&t.records[i])))
		if r := &t.records[i]; r.hadBefore {
			t.rows[r.rowKey] = r.before
		} else {
			delete(t.rows, r.rowKey)
		}
	}
	clear(t.records[n:])
	t.records = t.records[:n]
}

// maxRecord is the size that a record of the table's topic may have.
func (t *txTable) maxRecord() int {
	limit := 1 << 20
	if v, _ := t.topic.Config("max.message.bytes"); v != "" {
		if _, err := fmt.Sscan(v, &limit); err != nil {
			limit = 1 << 20
		}
	}
	return limit - 128 // what the batch adds
}

func allColumns(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// decode gives a stored row as the only row of a batch that is valid until the next call.
func (t *txTable) decode(row []byte) (*column.Batch, error) {
	t.decoded.Reset(t.types)
	if err := rowenc.DecodeRow(row, t.types, t.decoded.Cols); err != nil {
		return nil, fmt.Errorf("a row of table %q: %w", t.relation.Name, err)
	}
	t.decoded.Len = 1
	return t.decoded, nil
}

// maxBatch is where a transaction's records are cut into batches.
const maxBatch = 512 << 10

// commit writes the transaction as one journal unit and returns when that is durable.
func (s *Session) commit(ctx context.Context, t *tx) error {
	u := s.e.o.Broker.NewUnit()
	b := record.NewBuilder(record.None)
	ms := s.e.o.Clock.Now().UnixMilli()
	type placed struct {
		tab       *txTable
		partition int32
		records   []*txRecord
	}
	var batches []placed
	var buf []byte
	for _, tab := range t.ordered {
		for p := range int32(len(tab.topic.Partitions())) {
			cur := placed{tab: tab, partition: p}
			b.Reset()
			flush := func() error {
				if b.Len() == 0 {
					return nil
				}
				buf = b.Build(buf[:0])
				b.Reset()
				if _, err := u.AddBatch(tab.topic.Partition(p), buf); err != nil {
					return err
				}
				batches = append(batches, cur)
				cur = placed{tab: tab, partition: p}
				return nil
			}
			for i := range tab.records {
				r := &tab.records[i]
				if r.partition != p {
					continue
				}
				if b.Len() > 0 && b.Size()+len(r.key)+len(r.value) > maxBatch {
					if err := flush(); err != nil {
						u.Free()
						return err
					}
				}
				b.Append(ms, r.key, r.value)
				cur.records = append(cur.records, r)
			}
			if err := flush(); err != nil {
				u.Free()
				return err
			}
		}
	}
	if len(batches) == 0 {
		u.Free()
		s.finish(t)
		return nil
	}
	if s.e.o.Broker.StorageLow() {
		u.Free()
		return pgerr.New("53100", "the disk is nearly full: writes are refused until there is room")
	}
	lsn, offsets, err := u.Commit(ctx)
	if err != nil {
		return err
	}
	for i, p := range batches {
		if offsets[i] < 0 {
			continue // the table was dropped
		}
		for k, r := range p.records {
			at := place{p.partition, offsets[i] + int64(k)}
			p.tab.w.overlay[r.rowKey] = unpublished{row: r.row, at: at}
			size := len(r.rowKey) + len(r.row) + 160
			p.tab.w.order = append(p.tab.w.order, written{r.rowKey, at, size})
			p.tab.w.bytes += size
		}
		p.tab.w.wrote(p.partition, offsets[i], len(p.records))
		s.wrote(job.Position{Relation: p.tab.relation.ID, Partition: int(p.partition), Offset: offsets[i] + int64(len(p.records))})
	}
	// The next writer may come now: what it writes stands behind this in the journal, so it cannot outlive it.
	s.finish(t)
	if err := s.e.o.Broker.Wait(ctx, lsn); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return pgerr.Newf("40003", "the transaction was written, but the wait for it to be durable has ended: %v", err).
			WithDetail("It cannot be called back: it is there as soon as it is durable.")
	}
	return nil
}

// wrote remembers how far the session's queries must see.
func (s *Session) wrote(p job.Position) {
	for i := range s.writes {
		if w := &s.writes[i]; w.Relation == p.Relation && w.Partition == p.Partition {
			w.Offset = max(w.Offset, p.Offset)
			return
		}
	}
	s.writes = append(s.writes, p)
}

// finish gives back what a transaction holds.
func (s *Session) finish(t *tx) {
	for _, tab := range t.ordered {
		tab.release()
		s.e.locks.release(tab.w)
	}
	t.ordered, t.tables = nil, map[uint64]*txTable{}
	t.memory.Close()
}
