// Package nexmark generates the events of the Nexmark benchmark: auctions, the persons who open them and the bids on them. Every event is a
// pure function of (seed, id), so any worker can make any range; a column that nobody reads is not made. The values are those of the stock
// generator of the public benchmark (nexmark/nexmark) with a seeded random stream an event; docs/nexmark.md tells them apart.
package nexmark

import (
	"math"
	"math/bits"
	"strconv"
)

// Config says which events there are.
type Config struct {
	Seed           uint64
	Rate           int64 // events per second of event time, over all generators
	Generators     int64 // how many generators share the timeline
	FirstEventID   int64
	BaseTimeMillis int64 // event time of number 0, milliseconds since the Unix epoch
	OutOfOrder     int64 // size of the groups within which events are shuffled; 1 for none
}

// DefaultConfig is what the benchmark uses: seed 0, one generator, 10,000 events a second, in order, from 2015-07-15 00:00:00 UTC.
func DefaultConfig() Config {
	return Config{Rate: 10_000, Generators: 1, FirstEventID: 1, BaseTimeMillis: 1436918400000, OutOfOrder: 1}
}

// Kind of an event.
type Kind uint8

// The kinds, in a proportion of 1 : 3 : 46.
const (
	Person Kind = iota
	Auction
	Bid
)

const (
	proportion       = 50 // events a round: one person, three auctions, 46 bids
	auctionsPerRound = 3
	firstPersonID    = 1000
	firstAuctionID   = 1000
	firstCategoryID  = 10
	activePeople     = 1000
	personLead       = 10
	inFlightAuctions = 100
	auctionLead      = 10
	hotEvery         = 100 // one in a hundred sellers, bidders and auctions is hot
	poolSize         = 1 << 20
	numChannels      = 10_000
	personBytes      = 200
	auctionBytes     = 500
	bidBytes         = 100
	auctionLookAhead = inFlightAuctions * proportion / auctionsPerRound
	firstEventNumber = 1
	outOfOrderPrime  = 953
	minStringLength  = 3
	microsPerSecond  = 1_000_000
	microsPerMilli   = 1000
	hotChannels      = 4
	channelIDParam   = "&channel_id="
	bidExtraSoFar    = 32
)

var (
	firstNames = [...]string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = [...]string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	cities     = [...]string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states     = [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	hotChannel = [...]string{"Google", "Facebook", "Baidu", "Apple"}
)

// Generator makes the events of one generator. It is immutable and may be used from many goroutines.
type Generator struct {
	config   Config
	delay    float64 // microseconds between two events of this generator
	evenly   int64   // delay, when it is a whole number; else 0
	pool     []byte
	channels [][]byte // by number: first the hot ones, then channel-0 ...
	urls     [][]byte

	channelTexts, urlTexts texts // the same, for copying
}

// New makes a generator; it draws the text pool and the channels' addresses once.
func New(c Config) *Generator {
	if c.Generators < 1 {
		c.Generators = 1
	}
	if c.OutOfOrder < 1 {
		c.OutOfOrder = 1
	}
	g := &Generator{config: c, delay: float64(microsPerSecond) / float64(c.Rate) * float64(c.Generators)}
	if d := int64(g.delay); float64(d) == g.delay {
		g.evenly = d
	}
	g.drawPool()
	g.drawChannels()
	return g
}

func (g *Generator) drawPool() {
	r := random(g.config.Seed - 1)
	g.pool = make([]byte, poolSize, poolSize+textRoom)
	var v int32
	for i := range g.pool {
		if i%6 == 0 {
			v = r.int32()
		}
		g.pool[i] = byte('a' + v%26)
		v /= 26
	}
	g.pool = g.pool[:poolSize+textRoom] // zeros behind the end: texts are copied with a fixed size
}

func (g *Generator) drawChannels() {
	r := random(g.config.Seed - 2)
	address := func() []byte {
		b := []byte("https://www.nexmark.com/")
		for range 3 {
			b = appendString(b, &r, 5, '_')
			b = append(b, '/')
		}
		return append(b, "item.htm?query=1"...)
	}
	for _, name := range hotChannel {
		g.channels = append(g.channels, []byte(name))
		g.urls = append(g.urls, address())
	}
	for i := range numChannels {
		u := address()
		if r.below(10) > 0 {
			reversed := int32(bits.Reverse32(uint32(i)))
			u = append(u, channelIDParam...)
			if reversed < 0 {
				reversed = -reversed // stays negative for the smallest one, as Java's Math.abs does
			}
			u = strconv.AppendInt(u, int64(reversed), 10)
		}
		g.channels = append(g.channels, strconv.AppendInt([]byte("channel-"), int64(i), 10))
		g.urls = append(g.urls, u)
	}
	g.channelTexts, g.urlTexts = newTexts(g.channels, channelRoom), newTexts(g.urls, textRoom)
}

// number is event k's place on the timeline, shuffled within its group.
func (g *Generator) number(k int64) int64 {
	n := firstEventNumber + k
	if size := g.config.OutOfOrder; size > 1 {
		return n/size*size + n*outOfOrderPrime%size
	}
	return n
}

// ID is the id of event k (from 0).
func (g *Generator) ID(k int64) int64 { return g.config.FirstEventID + g.number(k) }

// KindOf tells what the event with an id is.
func KindOf(id int64) Kind {
	switch rem := id % proportion; {
	case rem == 0:
		return Person
	case rem <= auctionsPerRound:
		return Auction
	default:
		return Bid
	}
}

// millis is the event time of an event number, in milliseconds since the Unix epoch.
func (g *Generator) millis(number int64) int64 {
	if g.evenly > 0 {
		return g.config.BaseTimeMillis + number*g.evenly/microsPerMilli
	}
	return g.config.BaseTimeMillis + int64(float64(number)*g.delay)/microsPerMilli
}

// TimeMillis is the event time of event k.
func (g *Generator) TimeMillis(k int64) int64 { return g.millis(g.number(k)) }

// MaxTimeMillisBefore is the largest event time of the events before k, or the base time when there are none.
func (g *Generator) MaxTimeMillisBefore(k int64) int64 {
	if k <= 0 {
		return g.config.BaseTimeMillis
	}
	size := g.config.OutOfOrder
	if size <= 1 {
		return g.millis(firstEventNumber + k - 1)
	}
	highest := int64(0)
	group := (firstEventNumber + k - 1) / size * size
	for n := max(group, firstEventNumber); n < firstEventNumber+k; n++ {
		highest = max(highest, group+n*outOfOrderPrime%size)
	}
	if group > 0 {
		highest = max(highest, group-1)
	}
	return g.millis(highest)
}

func lastPerson(id int64) int64 { return id / proportion }

func lastAuction(id int64) int64 {
	last := id / proportion * auctionsPerRound
	switch rem := id % proportion; {
	case rem == 0:
		return last - 1
	case rem <= auctionsPerRound:
		return last + rem - 1
	default:
		return last + auctionsPerRound - 1
	}
}

func activePerson(r *random, id int64) int64 {
	people := lastPerson(id) + 1
	active := min(people, activePeople)
	return people - active + int64(r.below(int32(active+personLead)))
}

// appendString appends a random word of 3 to limit-1 characters, special ones among them; spaces at its ends are trimmed.
func appendString(dst []byte, r *random, limit int32, special byte) []byte {
	from := len(dst)
	for range minStringLength + r.below(limit-minStringLength) {
		if r.below(13) == 0 {
			dst = append(dst, special)
		} else {
			dst = append(dst, byte('a'+r.below(26)))
		}
	}
	if special != ' ' {
		return dst
	}
	for len(dst) > from && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	lead := from
	for lead < len(dst) && dst[lead] == ' ' {
		lead++
	}
	if lead > from {
		dst = append(dst[:from], dst[lead:]...)
	}
	return dst
}

// extra is filler text that brings a record near its average size: a piece of the pool.
func (g *Generator) extra(r *random, current, average int) []byte {
	if current > average {
		return nil
	}
	rest := average - current
	spread := int(math.Floor(float64(rest)*0.2 + 0.5))
	n := rest - spread
	if spread > 0 {
		n += int(r.below(int32(2 * spread)))
	}
	at := int(r.below(int32(poolSize - n)))
	return g.pool[at : at+n]
}
