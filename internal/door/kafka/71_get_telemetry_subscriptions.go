package kafka

import (
	"context"
	"crypto/rand"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GetTelemetrySubscriptions (71)
//
// KIP-714: what metrics of the client the node would like to have. Nothing is subscribed: the client is given an identity, and asks again after a while.

func init() { register(api{key: 71, min: 0, max: 0, handle: getTelemetrySubscriptions}) }

const (
	telemetryInterval = 300_000 // milliseconds until a client asks again
	telemetryMaxBytes = 1 << 20
	noSubscription    = 0 // its id
)

func getTelemetrySubscriptions(_ context.Context, _ call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.GetTelemetrySubscriptionsRequest)
	resp := req.ResponseKind().(*kmsg.GetTelemetrySubscriptionsResponse)
	resp.ClientInstanceID = req.ClientInstanceID
	if resp.ClientInstanceID == ([16]byte{}) {
		_, _ = rand.Read(resp.ClientInstanceID[:]) // never fails (documented)
		resp.ClientInstanceID[6] = resp.ClientInstanceID[6]&0x0f | 0x40
		resp.ClientInstanceID[8] = resp.ClientInstanceID[8]&0x3f | 0x80
	}
	resp.SubscriptionID = noSubscription
	resp.AcceptedCompressionTypes = []int8{4, 3, 1, 2} // zstd, lz4, gzip, snappy
	resp.PushIntervalMillis, resp.TelemetryMaxBytes, resp.DeltaTemporality = telemetryInterval, telemetryMaxBytes, true
	resp.RequestedMetrics = []string{}
	return resp, nil
}

// PushTelemetry (72)
//
// The metrics of a client. None are asked for, so what comes is measured, counted and let go.

func init() { register(api{key: 72, min: 0, max: 0, handle: pushTelemetry}) }

func pushTelemetry(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.PushTelemetryRequest)
	resp := req.ResponseKind().(*kmsg.PushTelemetryResponse)
	switch {
	case req.ClientInstanceID == ([16]byte{}):
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.SubscriptionID != noSubscription:
		resp.ErrorCode = kerr.UnknownSubscriptionID.Code
	case len(req.Metrics) > telemetryMaxBytes:
		resp.ErrorCode = kerr.TelemetryTooLarge.Code
	case req.CompressionType < 0 || req.CompressionType > 4:
		resp.ErrorCode = kerr.UnsupportedCompressionType.Code
	default:
		c.s.metrics.telemetry(len(req.Metrics))
	}
	return resp, nil
}
