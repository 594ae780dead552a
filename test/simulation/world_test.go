package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/record"
)

const (
	startMs  = 1_750_000_000_000
	window   = 10_000 // milliseconds
	delay    = 5_000
	accounts = 4
	opening  = 100
	// maxInFlight is how many batches an idempotent producer may send without an answer.
	maxInFlight = 5
)

// world is what the clients know.
type world struct {
	clicks, legs []*partition
	eventMs      int64 // where event time is
	setup        []string
	defined      int      // statements of setup that were acknowledged
	transfers    []moved  // in the order in which they were asked for
	paid         int      // of these, a prefix was acknowledged
	optional     []string // views that come and go
	seen         map[string][]int64
	keyed        *partition // compacted
	forgetful    bool       // its tombstones may go
	fleet        *fleet
}

// partition is one partition that clients write to.
type partition struct {
	topic   string
	index   int32
	log     []string // values by offset, as the node ordered them
	acked   int64    // records before it were acknowledged
	waiting []*sent  // not acknowledged
	all     []*sent
	seq     int32
}

// sent is a batch that was ordered and not acknowledged.
type sent struct {
	bytes  []byte
	base   int64
	values []string
	lsn    journal.LSN
}

type moved struct{ from, to, amount int }

// known is what clients know when the power goes.
type known struct {
	acked   map[string]int64
	defined int
	paid    int
	seen    map[string][]int64
	fleet   *fleet
}

const windowed = `SELECT k, window_start, count(*) AS n, sum(v)::bigint AS total FROM TUMBLE(clicks, at, INTERVAL '10 seconds') GROUP BY k, window_start, window_end`

// optionalViews may be made and dropped at any time. Each is one of the kinds that the oracle knows.
var optionalViews = map[string]string{
	"keys2":    "SELECT k, count(*) AS n, sum(v)::bigint AS total FROM clicks GROUP BY k",
	"over":     "SELECT count(*) AS keys, sum(n)::bigint AS n, sum(total)::bigint AS total FROM keys",
	"windows2": windowed,
	"big":      "SELECT k, n FROM keys WHERE n > 3",
	"rich":     "SELECT id, balance FROM accounts WHERE balance >= 100",
}

func (w *world) init(rng *rand.Rand) {
	for i := range int32(1 + rng.IntN(3)) {
		w.clicks = append(w.clicks, &partition{topic: "clicks", index: i})
	}
	w.legs = []*partition{{topic: "legs", index: 0}, {topic: "legs", index: 1}}
	w.keyed, w.forgetful, w.fleet = &partition{topic: keyed}, rng.IntN(2) == 0, newFleet(2+rng.IntN(3), rng.IntN(2) == 0)
	w.eventMs, w.seen = startMs, map[string][]int64{}
	w.setup = []string{
		`CREATE SOURCE clicks (k text, v bigint, at timestamp, WATERMARK FOR at AS at - INTERVAL '5 seconds') WITH (connector = 'kafka', topic = 'clicks') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW keys AS SELECT k, count(*) AS n, sum(v)::bigint AS total FROM clicks GROUP BY k`,
		`CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, sum(v)::bigint AS total FROM clicks`,
		`CREATE SOURCE legs (amount bigint) WITH (connector = 'kafka', topic = 'legs') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW balance AS SELECT count(*) AS n, sum(amount)::bigint AS total FROM legs`,
		`CREATE MATERIALIZED VIEW windows AS ` + windowed,
		`CREATE SINK closed AS ` + windowed + ` EMIT ON WINDOW CLOSE WITH (connector = 'kafka', topic = 'closed') FORMAT PLAIN ENCODE JSON`,
		`CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)`,
		`CREATE MATERIALIZED VIEW money AS SELECT count(*) AS n, sum(balance)::bigint AS total FROM accounts`,
	}
	// Some histories do without some of it, so that islands differ.
	keep := w.setup[:2]
	for _, s := range w.setup[2:] {
		if rng.IntN(4) > 0 {
			keep = append(keep, s)
		}
	}
	w.setup = slices.DeleteFunc(keep, func(s string) bool {
		return strings.Contains(s, "FROM legs") && !slices.ContainsFunc(keep, func(s string) bool { return strings.HasPrefix(s, "CREATE SOURCE legs") }) ||
			strings.Contains(s, "FROM accounts") && !slices.ContainsFunc(keep, func(s string) bool { return strings.HasPrefix(s, "CREATE TABLE") })
	})
	for name := range optionalViews {
		if rng.IntN(2) == 0 {
			w.optional = append(w.optional, name)
		}
	}
	slices.Sort(w.optional)
	rng.Shuffle(len(w.optional), func(i, k int) { w.optional[i], w.optional[k] = w.optional[k], w.optional[i] })
}

func (w *world) partitions() []*partition {
	return slices.Concat(w.clicks, w.legs, []*partition{w.keyed})
}

func (p *partition) key() string { return fmt.Sprint(p.topic, "-", p.index) }

// known is called when the power goes, by whoever was at the file system just then.
func (h *run1) known() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := known{acked: map[string]int64{}, defined: h.world.defined, paid: h.world.paid, seen: map[string][]int64{}}
	for _, p := range h.world.partitions() {
		k.acked[p.key()] = p.acked
	}
	for name, at := range h.world.seen {
		k.seen[name] = slices.Clone(at)
	}
	k.fleet = h.world.fleet.clone()
	return k
}

// at returns the node's partition, nil if the topic is not there yet.
func (h *run1) at(p *partition) *broker.Partition {
	t, ok := h.core.Broker.Topic(p.topic)
	if !ok {
		return nil
	}
	return t.Partition(p.index)
}

// build makes a batch; with keys, of values as in keyed.
func build(values []string, producer int64, seq int32, keys bool) []byte {
	b := record.NewBuilder([]record.Codec{record.None, record.LZ4}[len(values)%2])
	if producer >= 0 {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = producer, 0, seq
	}
	for i, v := range values {
		var key []byte
		value := []byte(v)
		if keys {
			k, text, ok := strings.Cut(v, "=")
			if key, value = []byte(k), nil; ok {
				value = []byte(text)
			}
		}
		b.Append(startMs+int64(i), key, value)
	}
	return b.Build(nil)
}

// produce sends a batch as an idempotent producer does; whether it is durable is looked at later.
func (h *run1) produce() {
	w := &h.world
	p := w.clicks[h.rng.IntN(len(w.clicks))]
	at := h.at(p)
	if at == nil || len(p.waiting) == maxInFlight {
		return
	}
	s := &sent{}
	for range 1 + h.rng.IntN(6) {
		w.eventMs += h.rng.Int64N(2_500)
		s.values = append(s.values, h.click())
	}
	s.bytes = build(s.values, 100+int64(p.index), p.seq, false)
	if h.send(p, at, s) {
		p.seq += int32(len(s.values))
		h.records += len(s.values)
	}
}

// click makes a record's value: some are out of order, a few are late or cannot be read.
func (h *run1) click() string {
	ms := h.world.eventMs - h.rng.Int64N(delay)
	switch h.rng.IntN(18) {
	case 0:
		ms -= window + h.rng.Int64N(3*window)
	case 1:
		return fmt.Sprintf(`{"k":"broken","v":%d,"at":`, h.rng.IntN(1_000_000))
	case 2:
		return fmt.Sprintf(`{"k":"timeless","v":%d}`, h.rng.IntN(1_000_000))
	}
	k := fmt.Sprintf(`"k%d"`, h.rng.IntN(6))
	if h.rng.IntN(20) == 0 {
		k = "null"
	}
	return fmt.Sprintf(`{"k":%s,"v":%d,"at":"%s"}`, k, h.rng.IntN(1000)-300, time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000"))
}

// send orders a batch; false if it was refused, which ends the history.
func (h *run1) send(p *partition, at *broker.Partition, s *sent) bool {
	items := []broker.ProduceItem{{P: at, Batch: slices.Clone(s.bytes)}}
	lsn := h.core.Broker.Produce(items)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := items[0].Err; err != nil {
		h.err = errors.Join(h.err, fmt.Errorf("producing into %s: %w", p.key(), err))
		return false
	}
	s.base, s.lsn = items[0].Base, lsn
	if s.base != int64(len(p.log)) {
		h.err = errors.Join(h.err, fmt.Errorf("a batch for %s got offset %d, not %d", p.key(), s.base, len(p.log)))
		return false
	}
	say("produce %d records into %s at %d, unit %d", len(s.values), p.key(), s.base, lsn)
	p.log = append(p.log, s.values...)
	p.waiting, p.all = append(p.waiting, s), append(p.all, s)
	return true
}

// produceLegs writes both legs of a transfer in one unit: no reader may ever see one alone.
func (h *run1) produceLegs() {
	w := &h.world
	a, b := h.at(w.legs[0]), h.at(w.legs[1])
	if a == nil || b == nil {
		return
	}
	u := h.core.Broker.NewUnit()
	var sents []*sent
	amount := 1 + h.rng.IntN(1_000)
	for i, at := range []*broker.Partition{a, b} {
		s := &sent{values: []string{fmt.Sprintf(`{"amount":%d}`, amount*(1-2*i))}}
		s.bytes = build(s.values, -1, -1, false)
		if _, err := u.AddBatch(at, s.bytes); err != nil {
			panic(err)
		}
		sents = append(sents, s)
	}
	lsn, offsets, err := u.Commit(h.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.err = errors.Join(h.err, err)
		return
	}
	say("produce legs at %v, unit %d", offsets, lsn)
	for i, s := range sents {
		p := w.legs[i]
		if offsets[i] != int64(len(p.log)) {
			h.err = errors.Join(h.err, fmt.Errorf("a leg for %s got offset %d, not %d", p.key(), offsets[i], len(p.log)))
		}
		s.base, s.lsn = offsets[i], lsn
		p.log = append(p.log, s.values...)
		p.waiting = append(p.waiting, s)
	}
}

// acknowledge notes which batches are durable.
func (h *run1) acknowledge() {
	durable := h.core.Journal.Durable()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.world.partitions() {
		for len(p.waiting) > 0 && p.waiting[0].lsn <= durable {
			p.acked = p.waiting[0].base + int64(len(p.waiting[0].values))
			p.waiting = p.waiting[1:]
		}
	}
}

// define makes the next relation, or makes or drops an optional one.
func (h *run1) define() {
	h.mu.Lock()
	w := &h.world
	ready := w.defined
	h.mu.Unlock()
	if ready < len(w.setup) {
		text := w.setup[ready]
		h.start(admin, func() error {
			say("begin: %s", text)
			for _, spec := range w.topicsOf(text) {
				if _, err := h.core.Broker.CreateTopic(h.ctx, spec); err != nil && !errors.Is(err, broker.ErrTopicExists) {
					return err
				}
			}
			switch err := h.exec(text); {
			case state(err) == "55000":
				return nil // what it reads was being built when the power went, and is still
			case err != nil && !(state(err) == "42P07" && h.exists(nameOf(text))): // it may have got so far before
				return err
			}
			say("done: %s", text)
			h.mu.Lock()
			defer h.mu.Unlock()
			w.defined++
			return nil
		})
		return
	}
	if len(w.optional) == 0 {
		return
	}
	name := w.optional[h.rng.IntN(len(w.optional))]
	query := optionalViews[name]
	for _, on := range []string{"accounts", "keys"} {
		if strings.Contains(query, "FROM "+on) && !h.exists(on) {
			return
		}
	}
	text := "CREATE MATERIALIZED VIEW " + name + " AS " + query
	if h.exists(name) {
		text = "DROP MATERIALIZED VIEW " + name
	}
	h.start(admin, func() error {
		say("begin: %s", text)
		err := h.exec(text)
		say("done: %s: %v", text, err)
		if state(err) == "55000" {
			return nil // what it reads is being built still
		}
		return err
	})
}

// topicsOf are the topics that are made before a statement; that of keyed, which no relation reads, before the first.
func (w *world) topicsOf(text string) []broker.TopicSpec {
	switch nameOf(text) {
	case "clicks":
		tombstones := "86400000"
		if w.forgetful {
			tombstones = "0"
		}
		return []broker.TopicSpec{
			{Name: "clicks", Partitions: int32(len(w.clicks))},
			{Name: keyed, Partitions: 1, Configs: map[string]string{
				"cleanup.policy": "compact", "internal.segment.bytes": "400", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": tombstones,
			}},
		}
	case "legs":
		return []broker.TopicSpec{{Name: "legs", Partitions: int32(len(w.legs))}}
	}
	return nil
}

// nameOf is the relation that a CREATE makes.
func nameOf(text string) string {
	words := strings.Fields(text)
	if words[1] == "MATERIALIZED" {
		return words[3]
	}
	return words[2]
}

func (h *run1) exists(name string) bool {
	for _, r := range h.core.Jobs.Catalog().Relations() {
		if r.Name == name {
			return true
		}
	}
	return false
}

func (h *run1) exec(text string) error {
	s := h.engine.NewSession("test", "leat")
	defer s.Close()
	_, err := run(h.ctx, s, text)
	return err
}

// transfer moves money in a SQL transaction; the first opens the accounts.
func (h *run1) transfer() {
	if !h.exists("accounts") {
		return
	}
	w := &h.world
	h.mu.Lock()
	next, ready := len(w.transfers), h.core.Jobs.Readable(h.relation("accounts"))
	busy := h.busy[cashier]
	h.mu.Unlock()
	if busy || ready != nil {
		return
	}
	m := moved{from: h.rng.IntN(accounts), amount: h.rng.IntN(50)}
	m.to = (m.from + 1 + h.rng.IntN(accounts-1)) % accounts
	text := fmt.Sprintf("BEGIN; UPDATE accounts SET balance = balance - %d WHERE id = %d; UPDATE accounts SET balance = balance + %d WHERE id = %d; COMMIT",
		m.amount, m.from, m.amount, m.to)
	if next == 0 {
		text = "INSERT INTO accounts VALUES (0, 100), (1, 100), (2, 100), (3, 100)"
	}
	w.transfers = append(w.transfers, m)
	h.transfers++
	h.start(cashier, func() error {
		say("begin: %s", text)
		if err := h.exec(text); err != nil {
			return err
		}
		say("done: %s", text)
		h.mu.Lock()
		defer h.mu.Unlock()
		w.paid = next + 1
		return nil
	})
}

func (h *run1) relation(name string) uint64 {
	for _, r := range h.core.Jobs.Catalog().Relations() {
		if r.Name == name {
			return r.ID
		}
	}
	return 0
}

// balances are the accounts after the first n transfers, as rows.
func (w *world) balances(n int) []string {
	if n == 0 {
		return nil
	}
	var b [accounts]int
	for i := range b {
		b[i] = opening
	}
	for _, m := range w.transfers[1:n] {
		b[m.from] -= m.amount
		b[m.to] += m.amount
	}
	var out []string
	for i, v := range b {
		out = append(out, fmt.Sprint(i, "|", v))
	}
	return out
}
