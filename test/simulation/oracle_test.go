package simulation

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/record"
)

// recovered compares what a crash has left with what clients know, and lets them go on: batches without an answer are sent again.
func (h *run1) recovered(k known) error {
	w := &h.world
	for _, p := range w.partitions() {
		var got []string
		if at := h.at(p); at != nil && p == w.keyed {
			var err error
			if got, err = h.kept(p, at); err != nil {
				return err
			}
		} else if at != nil {
			records, err := readAll(at)
			if err != nil {
				return err
			}
			for _, r := range records {
				got = append(got, r.value)
			}
		}
		if int64(len(got)) < k.acked[p.key()] {
			return fmt.Errorf("%s ends at %d; %d records were acknowledged", p.key(), len(got), k.acked[p.key()])
		}
		if len(got) > len(p.log) || !slices.Equal(got, p.log[:len(got)]) {
			return fmt.Errorf("%s holds\n%q\nwhere clients wrote\n%q", p.key(), got, p.log)
		}
		h.mu.Lock()
		p.acked = k.acked[p.key()]
		h.mu.Unlock()
	}
	if a, b := h.end(w.legs[0]), h.end(w.legs[1]); a != b {
		return fmt.Errorf("a unit was split: %d records are in one partition and %d in the other", a, b)
	}
	for _, p := range w.legs { // not idempotent: who got no answer does not send again
		p.log, p.waiting = p.log[:h.end(p)], nil
		p.acked = int64(len(p.log))
	}
	if err := h.recoveredFleet(k.fleet); err != nil {
		return err
	}
	for _, p := range append(slices.Clone(w.clicks), w.keyed) {
		if err := h.resend(p); err != nil {
			return err
		}
	}
	h.mu.Lock()
	w.defined, w.paid = k.defined, k.paid
	w.seen = k.seen
	h.mu.Unlock()
	for _, text := range w.setup[:k.defined] {
		if !h.exists(nameOf(text)) {
			return fmt.Errorf("the relation was acknowledged and is gone: %s", text)
		}
	}
	return h.recoveredAccounts(k)
}

func (h *run1) end(p *partition) int64 {
	if at := h.at(p); at != nil {
		return at.HighWatermark()
	}
	return 0
}

// resend sends the batches that got no answer again, in their order. One that is there gets the offset it has; the others are appended.
func (h *run1) resend(p *partition) error {
	end := h.end(p)
	// What was acknowledged after the power went, as far as the old node could tell, counts as not acknowledged either.
	again, log := p.unanswered(), p.log
	p.log = slices.Clone(log[:end])
	p.waiting, p.all = nil, slices.DeleteFunc(p.all, func(s *sent) bool { return s.base >= p.acked })
	at := h.at(p)
	for _, s := range again {
		items := []broker.ProduceItem{{P: at, Batch: slices.Clone(s.bytes)}}
		lsn := h.core.Broker.Produce(items)
		if err := items[0].Err; err != nil {
			return fmt.Errorf("sending a batch for %s at %d again: %w", p.key(), s.base, err)
		}
		there := s.base < end
		if got := items[0].Base; there && got != s.base || !there && got != int64(len(p.log)) {
			return fmt.Errorf("a batch for %s that was at %d (the log ends at %d) got offset %d when it was sent again", p.key(), s.base, end, got)
		}
		s.base, s.lsn = items[0].Base, lsn
		if !there {
			p.log = append(p.log, s.values...)
		}
		p.waiting, p.all = append(p.waiting, s), append(p.all, s)
	}
	return nil
}

// unanswered are the batches at or behind what was acknowledged.
func (p *partition) unanswered() []*sent {
	var out []*sent
	for _, s := range p.all {
		if s.base >= p.acked {
			out = append(out, s)
		}
	}
	return out
}

// recoveredAccounts checks that the accounts are those after some prefix of the transfers, with at least those that were acknowledged.
func (h *run1) recoveredAccounts(k known) error {
	w := &h.world
	if len(w.transfers) == 0 {
		return nil
	}
	if err := h.settleAll(); err != nil || h.fs.lost() {
		return err
	}
	if !h.exists("accounts") {
		if k.paid > 0 {
			return fmt.Errorf("%d transfers were acknowledged; the table is gone", k.paid)
		}
		w.transfers = nil
		return nil
	}
	if h.core.Jobs.Readable(h.relation("accounts")) != nil {
		return nil
	}
	got, err := h.query("SELECT id, balance FROM accounts")
	if err != nil {
		return err
	}
	for n := len(w.transfers); n >= k.paid; n-- {
		if slices.Equal(got, w.balances(n)) {
			w.transfers = w.transfers[:n]
			h.mu.Lock()
			w.paid = n
			h.mu.Unlock()
			return nil
		}
	}
	return fmt.Errorf("the accounts are %v; after the %d transfers that were acknowledged they were %v", got, k.paid, w.balances(k.paid))
}

type stored struct {
	offset  int64
	value   string
	headers map[string]string
}

// readAll reads a partition up to its high watermark and checks its offsets.
func readAll(p *broker.Partition) ([]stored, error) {
	var out []stored
	var buf []byte
	end := p.HighWatermark()
	var r record.Reader
	defer r.Close()
	for at := int64(0); at < end; {
		c, err := p.Read(at, 1<<20, broker.ViewDurable, true)
		if err != nil {
			return nil, fmt.Errorf("reading %s at %d: %w", p, at, err)
		}
		buf, err = c.AppendTo(buf[:0])
		c.Release()
		if err != nil {
			return nil, err
		}
		for rest := buf; len(rest) > 0; {
			var batch []byte
			if batch, rest, err = record.Next(rest); err != nil {
				return nil, err
			}
			if err := r.Reset(batch); err != nil {
				return nil, err
			}
			for r.Next() {
				rec := r.Record()
				if rec.Offset != int64(len(out)) {
					return nil, fmt.Errorf("%s: offset %d comes where %d should", p, rec.Offset, len(out))
				}
				s := stored{offset: rec.Offset, value: string(rec.Value), headers: map[string]string{}}
				rec.EachHeader(func(k, v []byte) bool { s.headers[string(k)] = string(v); return true })
				out = append(out, s)
			}
			if err := r.Err(); err != nil {
				return nil, err
			}
			at = int64(len(out))
		}
	}
	return out, nil
}

func (h *run1) query(text string) ([]string, error) {
	s := h.engine.NewSession("test", "leat")
	defer s.Close()
	return run(h.ctx, s, text)
}

// positions is what the committed epochs say of one job: its readers, and what it has counted.
type positions struct {
	readers map[uint64]flow.SourceState
	late    int64
}

// committed reads where all jobs are, as the units up to the last durable one say.
func (h *run1) committed() (map[uint64]*positions, error) {
	out, epochs := map[uint64]*positions{}, map[uint64]uint64{}
	err := h.core.DB.ScanMeta("job/positions/", func(_ string, value []byte) error {
		var p struct {
			Epoch   uint64   `json:"epoch"`
			Jobs    []uint64 `json:"jobs"`
			Readers []struct {
				Jobs  []uint64         `json:"jobs"`
				State flow.SourceState `json:"state"`
			} `json:"readers"`
		}
		if err := json.Unmarshal(value, &p); err != nil {
			return err
		}
		for _, id := range p.Jobs {
			if epochs[id] > p.Epoch {
				continue
			}
			epochs[id] = p.Epoch
			out[id] = &positions{readers: map[uint64]flow.SourceState{}}
			for _, r := range p.Readers {
				if slices.Contains(r.Jobs, id) {
					out[id].readers[r.State.Relation] = r.State
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, h.core.DB.ScanMeta("job/counts/", func(key string, value []byte) error {
		id, err := strconv.ParseUint(strings.TrimPrefix(key, "job/counts/"), 10, 64)
		if err != nil {
			return err
		}
		var c operator.Counts
		if err := json.Unmarshal(value, &c); err != nil {
			return err
		}
		if out[id] != nil {
			out[id].late = c.Late
		}
		return nil
	})
}

// click is a record as the views see it.
type click struct {
	K  *string
	V  int64
	At *string
}

// truth is what all views of clicks are over the given prefix of its partitions.
type truth struct {
	n, total int64
	keys     map[string][2]int64
	windows  map[string][2]int64
	ends     map[string]int64 // of windows
	mark     int64
	late     int64
	bad      []string
}

func (w *world) truth(ends []int64) *truth {
	t := &truth{keys: map[string][2]int64{}, windows: map[string][2]int64{}, ends: map[string]int64{}, mark: math.MaxInt64}
	for i, p := range w.clicks {
		mark := int64(math.MinInt64)
		for offset, value := range p.log[:ends[i]] {
			var c click
			if err := json.Unmarshal([]byte(value), &c); err != nil || c.At == nil {
				t.bad = append(t.bad, fmt.Sprint(i, "|", offset))
				continue
			}
			at, err := time.Parse("2006-01-02T15:04:05.000", *c.At)
			if err != nil {
				panic(err)
			}
			k := "NULL"
			if c.K != nil {
				k = *c.K
			}
			t.n++
			t.total += c.V
			t.keys[k] = [2]int64{t.keys[k][0] + 1, t.keys[k][1] + c.V}
			ms := at.UnixMilli()
			mark = max(mark, ms-delay)
			start := ms - ms%window
			if start+window <= mark {
				t.late++
				continue
			}
			name := k + "|" + time.UnixMilli(start).UTC().Format("2006-01-02 15:04:05")
			t.ends[name] = start + window
			t.windows[name] = [2]int64{t.windows[name][0] + 1, t.windows[name][1] + c.V}
		}
		t.mark = min(t.mark, mark)
	}
	slices.Sort(t.bad)
	return t
}

func lines(m map[string][2]int64) []string {
	var out []string
	for k, v := range m {
		out = append(out, fmt.Sprintf("%s|%d|%d", k, v[0], v[1]))
	}
	slices.Sort(out)
	return out
}

func (t *truth) closed() []string {
	var out []string
	for k, v := range t.windows {
		if t.ends[k] <= t.mark {
			out = append(out, fmt.Sprintf("%s|%d|%d", k, v[0], v[1]))
		}
	}
	slices.Sort(out)
	return out
}

func sumOf(n, total int64) []string {
	if n == 0 {
		return []string{"0|NULL"}
	}
	return []string{fmt.Sprintf("%d|%d", n, total)}
}

// check compares everything that can be read now with the oracle.
func (h *run1) check() error {
	if h.fs.lost() {
		return nil
	}
	h.checks++
	at, err := h.committed()
	if err != nil {
		return err
	}
	for _, s := range h.core.Jobs.Status() {
		if s.Err != nil {
			return fmt.Errorf("%s has stopped: %w", s.Relation.Name, s.Err)
		}
		p := at[s.Relation.ID]
		if !s.Live || p == nil {
			continue
		}
		if err := h.checkJob(s.Relation.Name, p, at); err != nil {
			return fmt.Errorf("%s: %w", s.Relation.Name, err)
		}
	}
	return h.checkTogether()
}

func (h *run1) checkJob(name string, p *positions, at map[uint64]*positions) error {
	h.views++
	w := &h.world
	if slices.Contains([]string{"over", "big"}, name) {
		p = at[h.relation("keys")]
		if p == nil {
			return nil
		}
	}
	var t *truth
	if state, ok := p.readers[h.relation("clicks")]; ok {
		ends := make([]int64, len(w.clicks))
		for i, s := range state.Partitions {
			ends[i] = s.Offset
			if s.Offset > int64(len(w.clicks[i].log)) {
				return fmt.Errorf("it has read partition %d up to %d; the partition ends at %d", i, s.Offset, len(w.clicks[i].log))
			}
		}
		if err := h.forward(name, ends); err != nil {
			return err
		}
		t = w.truth(ends)
	}
	var want []string
	query := "SELECT * FROM " + name
	switch name {
	case "keys", "keys2":
		want, query = lines(t.keys), "SELECT k, n, total FROM "+name
	case "counted":
		want = sumOf(t.n, t.total)
	case "windows", "windows2":
		want, query = lines(t.windows), "SELECT k, window_start, n, total FROM "+name
		h.late += int(t.late)
		if p.late != t.late {
			return fmt.Errorf("%d late rows are counted, not %d", p.late, t.late)
		}
	case "closed":
		if p.late != t.late {
			return fmt.Errorf("%d late rows are counted, not %d", p.late, t.late)
		}
		return h.checkSink(t)
	case "over":
		want = []string{"0|NULL|NULL"}
		if len(t.keys) > 0 {
			want = []string{fmt.Sprintf("%d|%d|%d", len(t.keys), t.n, t.total)}
		}
	case "big":
		for k, v := range t.keys {
			if v[0] > 3 {
				want = append(want, fmt.Sprintf("%s|%d", k, v[0]))
			}
		}
		slices.Sort(want)
		query = "SELECT k, n FROM big"
	case "balance":
		n := int64(0)
		for i, s := range p.readers[h.relation("legs")].Partitions {
			n += s.Offset
			if s.Offset > int64(len(w.legs[i].log)) {
				return fmt.Errorf("it has read leg %d up to %d; it ends at %d", i, s.Offset, len(w.legs[i].log))
			}
		}
		want = sumOf(n, 0)
	default:
		return nil
	}
	got, err := h.query(query)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("it shows\n%s\nwhere its positions %v mean\n%s", strings.Join(got, "\n"), p.readers, strings.Join(want, "\n"))
	}
	return nil
}

// forward checks that what a job shows never goes back, crashes included.
func (h *run1) forward(name string, ends []int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, optional := optionalViews[name]; optional {
		return nil
	}
	for i, last := range h.world.seen[name] {
		if ends[i] < last {
			return fmt.Errorf("it showed partition %d up to %d, and now up to %d", i, last, ends[i])
		}
	}
	h.world.seen[name] = ends
	return nil
}

// checkSink compares the sink's topic with the windows that are closed.
func (h *run1) checkSink(t *truth) error {
	topic, ok := h.core.Broker.Topic("closed")
	if !ok {
		return fmt.Errorf("its topic is not there")
	}
	records, err := readAll(topic.Partition(0))
	if err != nil {
		return err
	}
	var got []string
	for _, r := range records {
		var row struct {
			K     *string     `json:"k"`
			Start string      `json:"window_start"`
			N     int64       `json:"n"`
			Total json.Number `json:"total"`
		}
		if err := json.Unmarshal([]byte(r.value), &row); err != nil {
			return fmt.Errorf("it wrote %q: %w", r.value, err)
		}
		k := "NULL"
		if row.K != nil {
			k = *row.K
		}
		got = append(got, fmt.Sprintf("%s|%s|%d|%s", k, strings.Replace(row.Start, "T", " ", 1), row.N, row.Total))
	}
	slices.Sort(got)
	want := t.closed()
	h.closed += len(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("its topic holds\n%s\nwhere the closed windows are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return nil
}

// checkTogether checks what holds between relations in one snapshot, and the dead letters.
func (h *run1) checkTogether() error {
	if at := h.at(h.world.keyed); at != nil {
		if _, err := h.kept(h.world.keyed, at); err != nil {
			return err
		}
	}
	readable := func(name string) bool { return h.exists(name) && h.core.Jobs.Readable(h.relation(name)) == nil }
	if readable("keys") && readable("counted") {
		got, err := h.query("SELECT * FROM (SELECT coalesce(sum(n), 0)::bigint AS n FROM keys) a JOIN (SELECT n FROM counted) b ON a.n = b.n")
		if err != nil {
			return err
		}
		if len(got) != 1 {
			all, _ := h.query("SELECT k, n, total FROM keys UNION ALL SELECT 'counted', n, total FROM counted")
			return fmt.Errorf("two views of one source disagree:\n%s", strings.Join(all, "\n"))
		}
	}
	for _, q := range []string{"SELECT count(*), sum(balance)::bigint FROM accounts", "SELECT n, total FROM money"} {
		if !readable(strings.Fields(q[strings.Index(q, "FROM"):])[1]) {
			continue
		}
		got, err := h.query(q)
		if err != nil {
			return err
		}
		if !slices.Equal(got, []string{"0|NULL"}) && !slices.Equal(got, []string{"4|400"}) {
			return fmt.Errorf("%s: %v", q, got)
		}
	}
	return h.checkLetters()
}

// checkLetters checks that each record that cannot be used is in the dead letters once, as soon as any job has read it.
func (h *run1) checkLetters() error {
	topic, ok := h.core.Broker.Topic("clicks.errors")
	if !ok {
		return nil
	}
	records, err := readAll(topic.Partition(0))
	if err != nil {
		return err
	}
	h.deadLetters += len(records)
	ends := make([]int64, len(h.world.clicks))
	at, err := h.committed()
	if err != nil {
		return err
	}
	for _, p := range at {
		for i, s := range p.readers[h.relation("clicks")].Partitions {
			ends[i] = max(ends[i], s.Offset)
		}
	}
	got := map[string]bool{}
	for _, r := range records {
		place := r.headers["leat.error.partition"] + "|" + r.headers["leat.error.offset"]
		if got[place] {
			return fmt.Errorf("record %s is in the dead letters twice", place)
		}
		got[place] = true
	}
	for _, place := range h.world.truth(ends).bad {
		if !got[place] {
			return fmt.Errorf("record %s cannot be used, and is not in the dead letters %v", place, got)
		}
	}
	return nil
}
