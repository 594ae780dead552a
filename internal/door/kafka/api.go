package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// api is one API key as it is served.
type api struct {
	key      int16
	min, max int16 // versions that are announced
	// handle answers a request. It runs in the connection's writer, one request at a time; ctx ends with the connection. A response of nil
	// closes the connection.
	handle func(ctx context.Context, c call, req kmsg.Request) (kmsg.Response, error)
}

// call is what a handler may know of who asks.
type call struct {
	*conn
	header requestHeader
}

// apis are all that are served, by key.
var apis = map[int16]*api{}

// register is called by the file of each API key.
func register(a api) {
	if _, dup := apis[a.key]; dup {
		panic(fmt.Sprintf("API key %d is registered twice", a.key))
	}
	apis[a.key] = &a
}

// name is how the protocol calls the API.
func (a *api) name() string { return kmsg.NameForKey(a.key) }

// serves reports whether the version is announced.
func (a *api) serves(version int16) bool { return version >= a.min && version <= a.max }
