package nexmark

import "strconv"

// PersonEvent is a person who has just signed up. Its strings are appended to a buffer that the caller reuses.
type PersonEvent struct {
	ID                                          int64
	Name, EmailAddress, CreditCard, City, State []byte
	DateTime                                    int64 // milliseconds since the Unix epoch
	Extra                                       []byte
	buffer                                      []byte
}

// AuctionEvent is an auction that has just been opened.
type AuctionEvent struct {
	ID                    int64
	ItemName, Description []byte
	InitialBid, Reserve   int64
	DateTime, Expires     int64 // milliseconds since the Unix epoch
	Seller, Category      int64
	Extra                 []byte
	buffer                []byte
}

// BidEvent is a bid. Its slices belong to the generator.
type BidEvent struct {
	Auction, Bidder, Price int64
	Channel, URL           []byte
	DateTime               int64 // milliseconds since the Unix epoch
	Extra                  []byte
}

func (g *Generator) random(id int64) random { return random(g.config.Seed + uint64(id)) }

// Person makes event k, which must be a person. Its slices are valid until the next call with the same p.
func (g *Generator) Person(k int64, p *PersonEvent) {
	number := g.number(k)
	id := g.config.FirstEventID + number
	r := g.random(id)
	p.ID = firstPersonID + lastPerson(id)
	b := p.buffer[:0]
	b = append(b, firstNames[r.below(int32(len(firstNames)))]...)
	b = append(b, ' ')
	b = append(b, lastNames[r.below(int32(len(lastNames)))]...)
	name := len(b)
	b = appendString(b, &r, 7, ' ')
	b = append(b, '@')
	b = appendString(b, &r, 5, ' ')
	b = append(b, ".com"...)
	email := len(b)
	for i := range 4 {
		if i > 0 {
			b = append(b, ' ')
		}
		v := r.below(10_000)
		b = append(b, byte('0'+v/1000), byte('0'+v/100%10), byte('0'+v/10%10), byte('0'+v%10))
	}
	card := len(b)
	b = append(b, cities[r.below(int32(len(cities)))]...)
	city := len(b)
	b = append(b, states[r.below(int32(len(states)))]...)
	p.buffer = b
	p.Name, p.EmailAddress, p.CreditCard = b[:name], b[name:email], b[email:card]
	p.City, p.State = b[card:city], b[city:]
	p.DateTime = g.millis(number)
	p.Extra = g.extra(&r, 8+len(b), personBytes)
}

// Auction makes event k, which must be an auction. Its slices are valid until the next call with the same a.
func (g *Generator) Auction(k int64, a *AuctionEvent) {
	number := g.number(k)
	id := g.config.FirstEventID + number
	r := g.random(id)
	a.ID = firstAuctionID + lastAuction(id)
	a.DateTime = g.millis(number)
	if r.below(4) > 0 {
		a.Seller = lastPerson(id) / hotEvery * hotEvery
	} else {
		a.Seller = activePerson(&r, id)
	}
	a.Seller += firstPersonID
	a.Category = firstCategoryID + int64(r.below(5))
	a.InitialBid = drawPrice(&r)
	horizon := g.millis(number+auctionLookAhead) - a.DateTime
	a.Expires = a.DateTime + 1 + int64(r.below(int32(max(horizon*2, 1))))
	b := appendString(a.buffer[:0], &r, 20, ' ')
	name := len(b)
	b = appendString(b, &r, 100, ' ')
	a.buffer = b
	a.ItemName, a.Description = b[:name], b[name:]
	a.Reserve = a.InitialBid + drawPrice(&r)
	a.Extra = g.extra(&r, 8+len(b)+40, auctionBytes)
}

// Bid makes event k, which must be a bid.
func (g *Generator) Bid(k int64, b *BidEvent) {
	number := g.number(k)
	id := g.config.FirstEventID + number
	g.bidUpTo(drawAll, id, number, b)
}

func drawBidParties(r *random, id int64) (auction, bidder int64) {
	last := lastAuction(id)
	if r.below(2) > 0 {
		auction = last / hotEvery * hotEvery
	} else {
		from := max(last-inFlightAuctions, 0)
		auction = from + int64(r.below(int32(last-from+1+auctionLead)))
	}
	if r.below(4) > 0 {
		bidder = lastPerson(id)/hotEvery*hotEvery + 1
	} else {
		bidder = activePerson(r, id)
	}
	return auction + firstAuctionID, bidder + 2*firstPersonID // the stock generator adds the first id twice
}

// drawChannel returns an index into channels and urls.
func drawChannel(r *random) int32 {
	if r.below(2) > 0 {
		return r.below(hotChannels)
	}
	return hotChannels + r.below(numChannels)
}

// AppendJSON appends event k as one JSON object without a line end. extended adds the fields "event" and "type" in front.
func (g *Generator) AppendJSON(dst []byte, k int64, extended bool, scratch *Scratch) []byte {
	id := g.ID(k)
	kind := KindOf(id)
	dst = append(dst, '{')
	if extended {
		dst = append(dst, `"event":`...)
		dst = strconv.AppendInt(dst, id, 10)
		dst = append(dst, `,"type":"`...)
		dst = append(dst, [...]string{"person", "auction", "bid"}[kind]...)
		dst = append(dst, `",`...)
	}
	switch kind {
	case Person:
		p := &scratch.person
		g.Person(k, p)
		dst = appendNumber(dst, "id", p.ID)
		dst = appendText(dst, "name", p.Name)
		dst = appendText(dst, "emailAddress", p.EmailAddress)
		dst = appendText(dst, "creditCard", p.CreditCard)
		dst = appendText(dst, "city", p.City)
		dst = appendText(dst, "state", p.State)
		dst = appendNumber(dst, "dateTime", p.DateTime)
		dst = appendText(dst, "extra", p.Extra)
	case Auction:
		a := &scratch.auction
		g.Auction(k, a)
		dst = appendNumber(dst, "id", a.ID)
		dst = appendText(dst, "itemName", a.ItemName)
		dst = appendText(dst, "description", a.Description)
		dst = appendNumber(dst, "initialBid", a.InitialBid)
		dst = appendNumber(dst, "reserve", a.Reserve)
		dst = appendNumber(dst, "dateTime", a.DateTime)
		dst = appendNumber(dst, "expires", a.Expires)
		dst = appendNumber(dst, "seller", a.Seller)
		dst = appendNumber(dst, "category", a.Category)
		dst = appendText(dst, "extra", a.Extra)
	default:
		b := &scratch.bid
		g.Bid(k, b)
		dst = appendNumber(dst, "auction", b.Auction)
		dst = appendNumber(dst, "bidder", b.Bidder)
		dst = appendNumber(dst, "price", b.Price)
		dst = appendText(dst, "channel", b.Channel)
		dst = appendText(dst, "url", b.URL)
		dst = appendNumber(dst, "dateTime", b.DateTime)
		dst = appendText(dst, "extra", b.Extra)
	}
	dst[len(dst)-1] = '}' // in place of the last comma
	return dst
}

// Scratch is the memory that AppendJSON needs between calls.
type Scratch struct {
	person  PersonEvent
	auction AuctionEvent
	bid     BidEvent
}

func appendNumber(dst []byte, name string, v int64) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	dst = strconv.AppendInt(dst, v, 10)
	return append(dst, ',')
}

func appendText(dst []byte, name string, v []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":"`...)
	for _, c := range v {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, `",`...)
}
