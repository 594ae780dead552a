package bench

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector/nexmark"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/rowenc"
)

// StateOptions are those of State.
type StateOptions struct {
	Options
	Size   int64   // bytes of state that the aggregate is to have
	Rounds float64 // how often each group is met, on average; 0 is 2
}

// StateResult is what State gave.
type StateResult struct {
	Rows             int64   `json:"rows"`
	Groups           int64   `json:"groups"`
	StateBytes       int64   `json:"state_bytes"` // keys and values of the groups
	StateMemory      int64   `json:"state_memory_bytes"`
	Seconds          float64 `json:"seconds"`
	RunSeconds       float64 `json:"run_seconds"` // of these: epochs were run; the rest went into waiting for their commits
	RowsPerSecond    int64   `json:"rows_per_second"`
	CPUSeconds       float64 `json:"cpu_seconds"`
	RowsPerCPUSecond int64   `json:"rows_per_cpu_second"`
	PeakRSSBytes     int64   `json:"peak_rss_bytes"`
	DiskBytes        int64   `json:"disk_bytes"`
	Epochs           int     `json:"epochs"`
	EpochP50         float64 `json:"epoch_p50_ms"`
	EpochP99         float64 `json:"epoch_p99_ms"`
	Checksum         string  `json:"checksum"`
	Exact            bool    `json:"exact"` // the same rows as counted by a plain program
	Workers          int     `json:"workers"`
}

// groupBytes is what a group takes as a key (two columns) and a value, in bytes.
const groupBytes = 9 + 2 + 4*32 + 24

// stateQuery groups bids by a number that is spread evenly over so many groups, and a text that hangs on it: 128 characters, three quarters of which
// the group with the next number has too, so that sorted rows compress to about half.
func stateQuery(groups int64) string {
	k := fmt.Sprintf("(price * 48271 + bidder * 16807 + auction * 69621) %% %d", groups)
	return `SELECT k, md5(k::text) || md5((k + 1)::text) || md5((k + 2)::text) || md5((k + 3)::text) AS pad, count(*) AS n, sum(price) AS total
FROM (SELECT ` + k + ` AS k, price FROM bid) AS b
GROUP BY k, md5(k::text) || md5((k + 1)::text) || md5((k + 2)::text) || md5((k + 3)::text)`
}

// State runs an aggregate whose state is larger than the memory that it may use, and compares its result with that of a plain program.
func State(ctx context.Context, o StateOptions) (r *StateResult, err error) {
	if o.Size < groupBytes {
		return nil, fmt.Errorf("a state of %d bytes is too small", o.Size)
	}
	if o.Rounds == 0 {
		o.Rounds = 2
	}
	clean, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer clean()
	groups := o.Size / groupBytes
	n := NexmarkOptions{Events: int64(float64(groups)*o.Rounds)*50/46 + 1}
	if err := n.check(); err != nil {
		return nil, err
	}
	in, err := open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	if err := in.exec(ctx, bidSource(&n)); err != nil {
		return nil, err
	}
	in.epochs.take()
	start := used()
	if err := in.exec(ctx, "CREATE SINK result AS "+stateQuery(groups)+" WITH (connector = 'checksum')"); err != nil {
		return nil, err
	}
	wall, cpu := start.since()
	s, err := in.status("result")
	if err != nil {
		return nil, err
	}
	count, ep, run := in.epochs.take()
	peak := peakRSS() // without what counting by hand takes
	want, met, rows := stateByHand(&n, groups)
	r = &StateResult{
		Rows: rows, Groups: met, StateBytes: met * groupBytes, StateMemory: o.StateMemory, Seconds: round(wall, 3), RunSeconds: round(run.Seconds(), 3), CPUSeconds: round(cpu, 3),
		RowsPerSecond: int64(float64(rows) / wall), RowsPerCPUSecond: int64(float64(rows) / cpu), PeakRSSBytes: peak, DiskBytes: diskBytes(o.Dir),
		Epochs: count, EpochP50: milliseconds(ep.p50), EpochP99: milliseconds(ep.p99),
		Checksum: fmt.Sprintf("%016x", s.Checksum), Exact: s.Checksum == want, Workers: o.Workers,
	}
	if !r.Exact {
		return r, fmt.Errorf("the result's checksum is %016x, counted by hand it is %016x", s.Checksum, want)
	}
	return r, nil
}

// stateByHand computes the query over the same events in arrays.
func stateByHand(o *NexmarkOptions, groups int64) (checksum uint64, met, rows int64) {
	g := o.generator()
	counts, totals := make([]int64, groups), make([]int64, groups)
	var bid nexmark.BidEvent
	for k := range o.Events {
		if nexmark.KindOf(g.ID(k)) != nexmark.Bid {
			continue
		}
		g.Bid(k, &bid)
		at := (bid.Price*48271 + bid.Bidder*16807 + bid.Auction*69621) % groups
		counts[at]++
		totals[at] += bid.Price
		rows++
	}
	types := []column.Type{column.TInt64, column.TText, column.TInt64, column.TNumeric}
	b := column.NewBatch(types, column.MaxRows)
	var hashes []uint64
	sum := func() {
		hashes = rowenc.HashRows(b, []int{0, 1, 2, 3}, hashes)
		for _, h := range hashes {
			checksum += h
		}
		b.Reset(types)
	}
	var pad []byte
	for k, n := range counts {
		if n == 0 {
			continue
		}
		met++
		pad = pad[:0]
		for i := range int64(4) {
			digest := md5.Sum(strconv.AppendInt(nil, int64(k)+i, 10))
			pad = hex.AppendEncode(pad, digest[:])
		}
		b.Cols[0].AppendInt64(int64(k))
		b.Cols[1].AppendBytes(pad)
		b.Cols[2].AppendInt64(n)
		b.Cols[3].AppendDecimal(decimal.FromInt64(totals[k]))
		b.EndRow(1)
		if b.Len == column.MaxRows {
			sum()
		}
	}
	if b.Len > 0 {
		sum()
	}
	return checksum, met, rows
}

// diskBytes is what a folder's files take.
func diskBytes(dir string) int64 {
	total := int64(0)
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
