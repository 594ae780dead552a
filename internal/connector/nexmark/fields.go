package nexmark

import (
	"sync"

	"github.com/leat-io/leat/internal/column"
)

// getter names a field of an event.
type getter uint8

const (
	getNothing getter = iota
	bidAuction
	bidBidder
	bidTime
	bidPrice
	bidChannel
	bidURL
	bidExtra
	auctionID
	auctionItem
	auctionDescription
	auctionInitialBid
	auctionReserve
	auctionTime
	auctionExpires
	auctionSeller
	auctionCategory
	auctionExtra
	personID
	personName
	personEmail
	personCard
	personCity
	personState
	personTime
	personExtra
)

var fields = map[Kind]map[string]field{
	Bid: {
		"auction": {bidAuction, column.TInt64}, "bidder": {bidBidder, column.TInt64}, "price": {bidPrice, column.TInt64},
		"channel": {bidChannel, column.TText}, "url": {bidURL, column.TText}, "date_time": {bidTime, column.TTimestamp}, "extra": {bidExtra, column.TText},
	},
	Auction: {
		"id": {auctionID, column.TInt64}, "item_name": {auctionItem, column.TText}, "description": {auctionDescription, column.TText},
		"initial_bid": {auctionInitialBid, column.TInt64}, "reserve": {auctionReserve, column.TInt64}, "date_time": {auctionTime, column.TTimestamp},
		"expires": {auctionExpires, column.TTimestamp}, "seller": {auctionSeller, column.TInt64}, "category": {auctionCategory, column.TInt64},
		"extra": {auctionExtra, column.TText},
	},
	Person: {
		"id": {personID, column.TInt64}, "name": {personName, column.TText}, "email_address": {personEmail, column.TText},
		"credit_card": {personCard, column.TText}, "city": {personCity, column.TText}, "state": {personState, column.TText},
		"date_time": {personTime, column.TTimestamp}, "extra": {personExtra, column.TText},
	},
}

// stage is how far the draws of a bid must go for the fields that are read.
type stage uint8

const (
	drawNothing stage = iota // only its time
	drawParties
	drawPrices
	drawChannels
	drawAll
)

func (g getter) stage() stage {
	switch g {
	case bidAuction, bidBidder:
		return drawParties
	case bidPrice:
		return drawPrices
	case bidChannel, bidURL:
		return drawChannels
	case bidExtra:
		return drawAll
	}
	return drawNothing
}

// bidUpTo makes the bid with an id and number, as far as the stage asks for.
func (g *Generator) bidUpTo(upTo stage, id, number int64, b *BidEvent) {
	b.DateTime = g.millis(number)
	if upTo == drawNothing {
		return
	}
	r := g.random(id)
	b.Auction, b.Bidder = drawBidParties(&r, id)
	if upTo == drawParties {
		return
	}
	b.Price = drawPrice(&r)
	if upTo == drawPrices {
		return
	}
	channel := drawChannel(&r)
	b.Channel, b.URL = g.channels[channel], g.urls[channel]
	if upTo == drawChannels {
		return
	}
	b.Extra = g.extra(&r, bidExtraSoFar, bidBytes)
}

var generators struct {
	mu sync.Mutex
	by map[Config]*Generator
}

// maxShared bounds how many generators, of about 3 MB each, are kept for sources that are alike.
const maxShared = 16

// shared returns the generator of a configuration: its text pool and addresses are the same for all sources.
func shared(c Config) *Generator {
	generators.mu.Lock()
	defer generators.mu.Unlock()
	if g := generators.by[c]; g != nil {
		return g
	}
	g := New(c)
	if generators.by == nil || len(generators.by) >= maxShared {
		generators.by = map[Config]*Generator{}
	}
	generators.by[c] = g
	return g
}
