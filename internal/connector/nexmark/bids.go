package nexmark

import (
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
)

// Bids are made column by column: the draws of all rows of a chunk go one stage after the other, each in a loop of its own over the rows' random
// streams, and text is copied at the end. Bid is the same a row at a time; a test compares them.

// textRoom is how many bytes a text is copied with, whatever its length: a copy of a fixed size is a few instructions. The tables that texts come
// from have that much behind their ends, and no url and no extra of a bid is longer.
const (
	textRoom    = 96
	channelRoom = 16
)

// texts is a table of texts in one piece of memory, each at a multiple of its room.
type texts struct {
	data []byte
	size []uint8
}

func newTexts(list [][]byte, room int) texts {
	t := texts{data: make([]byte, len(list)*room), size: make([]uint8, len(list))}
	for i, b := range list {
		if len(b) > room {
			panic("nexmark: a text is longer than its room") // a mistake in the constants above
		}
		copy(t.data[i*room:], b)
		t.size[i] = uint8(len(b))
	}
	return t
}

// bidDraws are the draws of some bids.
type bidDraws struct {
	number  []int64
	streams []random
	channel []int32
	at      []int32
	size    []int32
}

// readBids fills out with the bids among events [from, to), at most limit, and returns the next event.
func (r *reader) readBids(from, to int64, limit int, out *connector.Rows) int64 {
	b := &r.bids
	next := r.bidNumbers(from, to, limit, out)
	n := len(b.number)
	out.Len = n
	into := drawsInto{auctions: r.ints(out, bidAuction, n), bidders: r.ints(out, bidBidder, n), prices: r.ints(out, bidPrice, n)}
	r.draw(b, drawNothing, r.stage, into)
	for i, f := range r.columns {
		r.fill(out.Cols[i], f, b)
	}
	if len(r.late) > 0 {
		r.drawn, out.Make = false, r.make
	}
	return next
}

// make makes late column i of the given rows of the chunk at hand, drawing for them what was not drawn for all.
func (r *reader) make(i int, rows []int32, dst *column.Vector) {
	if all := rows == nil; !r.drawn || r.someAll != all || !slices.Equal(rows, r.someRows) {
		r.drawn, r.someAll = true, all
		r.someRows = append(r.someRows[:0], rows...)
		r.some.take(&r.bids, r.stage, rows)
		r.draw(&r.some, r.stage, r.lateStage, drawsInto{})
	}
	r.fill(dst, r.late[i], &r.some)
}

// take makes b the given rows (nil: all) of what was drawn up to a stage.
func (b *bidDraws) take(all *bidDraws, upTo stage, rows []int32) {
	b.number = pick(b.number, all.number, rows)
	if upTo >= drawParties {
		b.streams = pick(b.streams, all.streams, rows)
	}
	if upTo >= drawChannels {
		b.channel = pick(b.channel, all.channel, rows)
	}
	if upTo >= drawAll {
		b.at, b.size = pick(b.at, all.at, rows), pick(b.size, all.size, rows)
	}
}

func pick[T any](dst, src []T, rows []int32) []T {
	if rows == nil {
		return append(dst[:0], src...)
	}
	dst = slices.Grow(dst[:0], len(rows))[:len(rows)]
	for i, row := range rows {
		dst[i] = src[row]
	}
	return dst
}

// drawsInto is where draws that are columns go, nil where nobody reads them.
type drawsInto struct{ auctions, bidders, prices []int64 }

// draw takes draws from one stage to another.
func (r *reader) draw(b *bidDraws, from, upTo stage, into drawsInto) {
	if from < drawParties && upTo >= drawParties {
		b.streams = slices.Grow(b.streams[:0], len(b.number))[:len(b.number)]
		seed := r.g.config.Seed + uint64(r.g.config.FirstEventID)
		for i, number := range b.number {
			b.streams[i] = random(seed + uint64(number))
		}
		r.drawParties(b, into.auctions, into.bidders)
	}
	if from < drawPrices && upTo >= drawPrices {
		if into.prices != nil {
			for i := range into.prices {
				into.prices[i] = drawPrice(&b.streams[i])
			}
		} else {
			for i := range b.streams {
				b.streams[i].skip(1)
			}
		}
	}
	if from < drawChannels && upTo >= drawChannels {
		b.drawChannels()
	}
	if from < drawAll && upTo >= drawAll {
		b.drawExtras()
	}
}

// bidNumbers finds the bids' numbers and positions.
func (r *reader) bidNumbers(from, to int64, limit int, out *connector.Rows) (next int64) {
	b, first := &r.bids, r.g.config.FirstEventID
	b.number = b.number[:0]
	if r.g.config.OutOfOrder > 1 {
		k := from
		for ; k < to && len(b.number) < limit; k++ {
			if number := r.g.number(k); KindOf(first+number) == Bid {
				b.number = append(b.number, number)
				out.Offsets = append(out.Offsets, k)
			}
		}
		return k
	}
	rows := int(min(int64(limit), to-from))
	b.number = slices.Grow(b.number, rows)[:rows]
	out.Offsets = slices.Grow(out.Offsets, rows)[:rows]
	n, k := 0, from
	for k < to && n < rows {
		rem := (first + firstEventNumber + k) % proportion
		if rem <= auctionsPerRound {
			k += auctionsPerRound + 1 - rem
			continue
		}
		for end := min(k+proportion-rem, to, k+int64(rows-n)); k < end; k++ {
			b.number[n], out.Offsets[n] = firstEventNumber+k, k
			n++
		}
	}
	b.number, out.Offsets = b.number[:n], out.Offsets[:n]
	return min(k, to)
}

// vector is the column that shows a field, nil if nobody reads it.
func (r *reader) vector(out *connector.Rows, get getter) *column.Vector {
	for i, f := range r.columns {
		if f.get == get {
			return out.Cols[i]
		}
	}
	return nil
}

// ints is room for n integers in the field's column, nil if nobody reads it.
func (r *reader) ints(out *connector.Rows, get getter, n int) []int64 {
	v := r.vector(out, get)
	if v == nil {
		return nil
	}
	v.Resize(column.TInt64, n)
	return v.I64
}

// drawParties draws auctions and bidders. Half of the rows take a hot auction and leave out a draw, at random: both are computed and one is
// chosen, for a branch would be mispredicted every other time.
func (r *reader) drawParties(b *bidDraws, auctions, bidders []int64) {
	first := r.g.config.FirstEventID
	for i, number := range b.number {
		id := first + number
		person := int64(uint64(id) / proportion)
		last := person*auctionsPerRound + auctionsPerRound - 1 // as lastAuction has it for a bid
		if last < inFlightAuctions || person < activePeople {
			auction, bidder := drawBidParties(&b.streams[i], id)
			if auctions != nil {
				auctions[i] = auction
			}
			if bidders != nil {
				bidders[i] = bidder
			}
			continue
		}
		s := b.streams[i]
		hot := int64(s.int32()) & 1 // 1: the hot auction
		ahead := s
		v := ahead.int32()
		x, ok := fold(v, inFlightAuctions+1+auctionLead)
		if !ok {
			x = ahead.folded(v, inFlightAuctions+1+auctionLead)
		}
		cold := last - inFlightAuctions + int64(x)
		auction := cold + (int64(uint64(last)/hotEvery*hotEvery)-cold)*hot
		s += (ahead - s) * random(1-hot)

		hot = int64(s.int32()) & 3
		hot = (hot | hot>>1) & 1 // 1: the hot bidder, three times of four
		ahead = s
		v = ahead.int32()
		if x, ok = fold(v, activePeople+personLead); !ok {
			x = ahead.folded(v, activePeople+personLead)
		}
		cold = person + 1 - activePeople + int64(x)
		bidder := cold + (int64(uint64(person)/hotEvery*hotEvery)+1-cold)*hot
		s += (ahead - s) * random(1-hot)

		b.streams[i] = s
		if auctions != nil {
			auctions[i] = auction + firstAuctionID
		}
		if bidders != nil {
			bidders[i] = bidder + 2*firstPersonID
		}
	}
}

// drawChannels draws each row's place in the tables of channels and urls.
func (b *bidDraws) drawChannels() {
	n := len(b.streams)
	b.channel = slices.Grow(b.channel[:0], n)[:n]
	for i := range b.channel {
		s := b.streams[i]
		hot := s.int32() & 1
		few, many := s, s
		v := many.int32()
		c, ok := fold(v, numChannels)
		if !ok {
			c = many.folded(v, numChannels)
		}
		c += hotChannels
		c += (few.int32()&(hotChannels-1) - c) * hot
		b.channel[i] = c
		b.streams[i] = many + (few-many)*random(hot)
	}
}

// drawExtras draws where in the pool each row's extra is.
func (b *bidDraws) drawExtras() {
	n := len(b.streams)
	b.at, b.size = slices.Grow(b.at[:0], n)[:n], slices.Grow(b.size[:0], n)[:n]
	const (
		rest   = bidBytes - bidExtraSoFar
		spread = (rest*2 + 5) / 10 // a fifth, rounded
	)
	for i := range b.at {
		s := b.streams[i]
		v := s.int32()
		size, ok := fold(v, 2*spread)
		if !ok {
			size = s.folded(v, 2*spread)
		}
		size += rest - spread
		v = s.int32()
		at, ok := fold(v, poolSize-size)
		if !ok {
			at = s.folded(v, poolSize-size)
		}
		b.at[i], b.size[i] = at, size
		b.streams[i] = s
	}
}

// copyText copies in pieces that are one load and one store each: a whole array would be a call of memmove, since the compiler must assume that
// the two overlap.
func copyText(dst, src *[textRoom]byte) {
	*(*[16]byte)(dst[0:]) = *(*[16]byte)(src[0:])
	*(*[16]byte)(dst[16:]) = *(*[16]byte)(src[16:])
	*(*[16]byte)(dst[32:]) = *(*[16]byte)(src[32:])
	*(*[16]byte)(dst[48:]) = *(*[16]byte)(src[48:])
	*(*[16]byte)(dst[64:]) = *(*[16]byte)(src[64:])
	*(*[16]byte)(dst[80:]) = *(*[16]byte)(src[80:])
}

// fill fills a column, unless its draws have done so.
func (r *reader) fill(v *column.Vector, f field, b *bidDraws) {
	n := len(b.number)
	switch f.get {
	case bidAuction, bidBidder, bidPrice:
		v.Type = f.typ
	case bidTime:
		v.Resize(f.typ, n)
		r.times(v.I64)
	case bidChannel:
		v.Resize(f.typ, n)
		fillShort(v, &r.g.channelTexts, b.channel)
	case bidURL:
		v.Resize(f.typ, n)
		fillLong(v, &r.g.urlTexts, b.channel)
	case bidExtra:
		v.Resize(f.typ, n)
		v.Data = slices.Grow(v.Data[:0], n*textRoom)[:n*textRoom]
		end := uint32(0)
		for k, at := range b.at {
			copyText((*[textRoom]byte)(v.Data[end:]), (*[textRoom]byte)(r.g.pool[at:]))
			end += uint32(b.size[k])
			v.Off[k+1] = end
		}
		v.Data = v.Data[:end]
	default:
		for range n {
			v.AppendNull()
		}
	}
}

func (r *reader) times(dst []int64) {
	base, evenly := r.g.config.BaseTimeMillis, r.g.evenly
	if evenly > 0 {
		for k, number := range r.bids.number {
			dst[k] = (base + number*evenly/microsPerMilli) * microsPerMilli
		}
		return
	}
	for k, number := range r.bids.number {
		dst[k] = r.g.millis(number) * microsPerMilli
	}
}

func fillLong(v *column.Vector, t *texts, rows []int32) {
	v.Data = slices.Grow(v.Data[:0], len(rows)*textRoom)[:len(rows)*textRoom]
	end := uint32(0)
	for k, c := range rows {
		copyText((*[textRoom]byte)(v.Data[end:]), (*[textRoom]byte)(t.data[int(c)*textRoom:]))
		end += uint32(t.size[c])
		v.Off[k+1] = end
	}
	v.Data = v.Data[:end]
}

func fillShort(v *column.Vector, t *texts, rows []int32) {
	v.Data = slices.Grow(v.Data[:0], len(rows)*channelRoom)[:len(rows)*channelRoom]
	end := uint32(0)
	for k, c := range rows {
		*(*[channelRoom]byte)(v.Data[end:]) = *(*[channelRoom]byte)(t.data[int(c)*channelRoom:])
		end += uint32(t.size[c])
		v.Off[k+1] = end
	}
	v.Data = v.Data[:end]
}
