package nexmark

import (
	"fmt"
	"strconv"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
)

// The options of the connector.
const (
	OptionTable      = "nexmark.table.type" // bid, auction or person
	OptionEvents     = "nexmark.event.num"  // how many events there are, of all kinds together
	OptionSeed       = "nexmark.seed"
	OptionRate       = "nexmark.event.rate" // events a second of event time
	OptionOutOfOrder = "nexmark.out.of.order"
	OptionBaseTime   = "nexmark.base.time" // milliseconds since the Unix epoch
)

// Source is the events of one kind as a source of one partition, whose positions are the numbers of events from 0. Any worker can make any range.
type Source struct {
	g       *Generator
	kind    Kind
	events  int64
	columns []field
}

type field struct {
	get getter
	typ column.Type
}

// NewSource is the source of a relation with the nexmark connector; its columns are found by their names.
func NewSource(r *catalog.Relation) (*Source, error) {
	s := &Source{}
	switch table := r.Options[OptionTable]; table {
	case "bid":
		s.kind = Bid
	case "auction":
		s.kind = Auction
	case "person":
		s.kind = Person
	default:
		return nil, fmt.Errorf("option %s is %q: bid, auction and person are known", OptionTable, table)
	}
	c := DefaultConfig()
	number := func(name string, into *int64, lowest int64) error {
		text, ok := r.Options[name]
		if !ok {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < lowest {
			return fmt.Errorf("option %s is %q: it takes a whole number from %d on", name, text, lowest)
		}
		*into = n
		return nil
	}
	seed := int64(0)
	if _, ok := r.Options[OptionEvents]; !ok {
		return nil, fmt.Errorf("option %s is needed: how many events there are", OptionEvents)
	}
	for _, o := range []struct {
		name   string
		into   *int64
		lowest int64
	}{
		{OptionEvents, &s.events, 0},
		{OptionSeed, &seed, 0},
		{OptionRate, &c.Rate, 1},
		{OptionOutOfOrder, &c.OutOfOrder, 1},
		{OptionBaseTime, &c.BaseTimeMillis, 0},
	} {
		if err := number(o.name, o.into, o.lowest); err != nil {
			return nil, err
		}
	}
	c.Seed = uint64(seed)
	s.g = shared(c)
	for i := range r.Columns {
		col := &r.Columns[i]
		if col.Generated != nil {
			s.columns = append(s.columns, field{get: getNothing, typ: col.Type})
			continue
		}
		f, ok := fields[s.kind][col.Name]
		if !ok {
			return nil, fmt.Errorf("%s events have no field %q", r.Options[OptionTable], col.Name)
		}
		if !f.takes(col.Type) {
			return nil, fmt.Errorf("column %q is %s: the field is %s", col.Name, col.Type, f.typ)
		}
		s.columns = append(s.columns, field{get: f.get, typ: col.Type})
	}
	return s, nil
}

func (f field) takes(t column.Type) bool {
	if f.typ.Kind == column.Timestamp && t.Kind == column.Timestamptz {
		return true
	}
	return f.typ.SameValues(t)
}

// Partitions implements connector.Source.
func (s *Source) Partitions() int { return 1 }

// Ends implements connector.Source.
func (s *Source) Ends(dst []int64) []int64 { return append(dst, s.events) }

// Start implements connector.Source.
func (s *Source) Start(mode string) ([]int64, error) {
	if mode == "latest" {
		return []int64{s.events}, nil
	}
	return []int64{0}, nil
}

// Bound implements connector.Bounded.
func (s *Source) Bound(int) (int64, bool) { return s.events, true }

// MaxTimeBefore implements connector.Striped. It counts events of all kinds, whose times never fall with their number: the source's own last
// row before pos is at most one round of events earlier.
func (s *Source) MaxTimeBefore(_ int, pos int64) (int64, bool) {
	for k := pos - 1; k >= 0 && k >= pos-2*proportion*s.g.config.OutOfOrder; k-- {
		if KindOf(s.g.ID(k)) == s.kind {
			return s.maxTimeOfKind(k), true
		}
	}
	return 0, false
}

// maxTimeOfKind is the greatest time of the source's rows up to row k, in microseconds. Times are shuffled within groups only.
func (s *Source) maxTimeOfKind(k int64) int64 {
	highest := s.g.TimeMillis(k)
	if size := s.g.config.OutOfOrder; size > 1 {
		for i := k - 1; i >= 0 && i > k-2*size-2*proportion; i-- {
			if KindOf(s.g.ID(i)) == s.kind {
				highest = max(highest, s.g.TimeMillis(i))
			}
		}
	}
	return highest * microsPerMilli
}

// Open implements connector.Source.
func (s *Source) Open(partition int, columns []int) (connector.Partition, error) {
	return s.OpenLate(partition, columns, nil)
}

// MakesLate implements connector.Late: bids' texts are worth it.
func (s *Source) MakesLate(column int) bool {
	switch s.columns[column].get {
	case bidChannel, bidURL, bidExtra:
		return true
	}
	return false
}

// OpenLate implements connector.Late.
func (s *Source) OpenLate(_ int, columns, late []int) (connector.Partition, error) {
	r := &reader{g: s.g, kind: s.kind}
	for _, c := range columns {
		f := s.columns[c]
		r.columns = append(r.columns, f)
		r.stage = max(r.stage, f.get.stage())
	}
	for _, c := range late {
		f := s.columns[c]
		r.late = append(r.late, f)
		r.lateStage = max(r.lateStage, f.get.stage())
	}
	return r, nil
}

// reader makes rows. A worker's own.
type reader struct {
	g       *Generator
	kind    Kind
	columns []field
	stage   stage
	person  PersonEvent
	auction AuctionEvent
	bids    bidDraws

	late      []field
	lateStage stage
	some      bidDraws // of the rows that late columns were last made for
	someRows  []int32
	someAll   bool // they are all
	drawn     bool // some is of the chunk at hand
}

// Close implements connector.Partition.
func (r *reader) Close() error { return nil }

// Read implements connector.Partition.
func (r *reader) Read(from, to int64, limit int, out *connector.Rows) (int64, error) {
	out.Reset(len(r.columns))
	for i, f := range r.columns {
		out.Cols[i].Reset(f.typ)
	}
	if r.kind == Bid {
		return r.readBids(from, to, limit, out), nil
	}
	k := from
	for ; k < to && out.Len < limit; k++ {
		number := r.g.number(k)
		id := r.g.config.FirstEventID + number
		if KindOf(id) != r.kind {
			continue
		}
		if r.kind == Auction {
			r.g.Auction(k, &r.auction)
		} else {
			r.g.Person(k, &r.person)
		}
		for i, f := range r.columns {
			r.put(f.get, out.Cols[i])
		}
		out.Offsets = append(out.Offsets, k)
		out.Len++
	}
	return k, nil
}

// put appends one field of the current event.
func (r *reader) put(get getter, v *column.Vector) {
	switch get {
	case auctionID:
		v.AppendInt64(r.auction.ID)
	case auctionItem:
		v.AppendBytes(r.auction.ItemName)
	case auctionDescription:
		v.AppendBytes(r.auction.Description)
	case auctionInitialBid:
		v.AppendInt64(r.auction.InitialBid)
	case auctionReserve:
		v.AppendInt64(r.auction.Reserve)
	case auctionTime:
		v.AppendInt64(r.auction.DateTime * microsPerMilli)
	case auctionExpires:
		v.AppendInt64(r.auction.Expires * microsPerMilli)
	case auctionSeller:
		v.AppendInt64(r.auction.Seller)
	case auctionCategory:
		v.AppendInt64(r.auction.Category)
	case auctionExtra:
		v.AppendBytes(r.auction.Extra)
	case personID:
		v.AppendInt64(r.person.ID)
	case personName:
		v.AppendBytes(r.person.Name)
	case personEmail:
		v.AppendBytes(r.person.EmailAddress)
	case personCard:
		v.AppendBytes(r.person.CreditCard)
	case personCity:
		v.AppendBytes(r.person.City)
	case personState:
		v.AppendBytes(r.person.State)
	case personTime:
		v.AppendInt64(r.person.DateTime * microsPerMilli)
	case personExtra:
		v.AppendBytes(r.person.Extra)
	default:
		v.AppendNull()
	}
}
