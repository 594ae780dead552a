package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// target is where in a partition to go to.
type target struct {
	kind targetKind
	n    int64     // an offset, or a distance
	at   time.Time // for targetTime
}

type targetKind uint8

const (
	targetStart  targetKind = iota // the oldest record, and n behind it
	targetEnd                      // behind the newest record, and n before it
	targetOffset                   // the offset n
	targetTime                     // the first record at or after a time
)

// targetHelp says what parseTarget reads.
const targetHelp = `A place is start (also earliest, beginning, oldest), end (also latest, newest), an offset (42), so many records after the start (+10) or
before the end (-10), or a time: the first record at or after it. ` + whenHelp

func parseTarget(text string, now time.Time) (target, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	switch s {
	case "start", "earliest", "beginning", "oldest":
		return target{kind: targetStart}, nil
	case "end", "latest", "newest":
		return target{kind: targetEnd}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		switch s[0] {
		case '+':
			return target{kind: targetStart, n: n}, nil
		case '-':
			return target{kind: targetEnd, n: -n}, nil
		}
		return target{kind: targetOffset, n: n}, nil
	}
	at, err := parseWhen(text, now)
	if err != nil {
		return target{}, fmt.Errorf("%q is no place: start, end, an offset, +N, -N or a time are known (a time: 2026-01-31T09:00:00Z, yesterday, \"last week\", \"2 hours ago\", -24h)", text)
	}
	return target{kind: targetTime, at: at}, nil
}

// offset is the place for a consumer.
func (p target) offset() kgo.Offset {
	switch p.kind {
	case targetStart:
		return kgo.NewOffset().AtStart().Relative(p.n)
	case targetEnd:
		return kgo.NewOffset().AtEnd().Relative(-p.n)
	case targetOffset:
		return kgo.NewOffset().At(p.n)
	}
	return kgo.NewOffset().AfterMilli(p.at.UnixMilli())
}

// bounds are where the partitions of topics start and end.
type bounds struct{ starts, ends kadm.ListedOffsets }

func listBounds(ctx context.Context, a *cluster, topics ...string) (b bounds, err error) {
	if b.starts, err = a.ListStartOffsets(ctx, topics...); err != nil {
		return b, err
	}
	b.ends, err = a.ListEndOffsets(ctx, topics...)
	return b, err
}

// of returns the bounds of one partition.
func (b bounds) of(topic string, partition int32) (start, end int64, err error) {
	s, ok := b.starts.Lookup(topic, partition)
	if !ok {
		return 0, 0, fmt.Errorf("%s-%d: no such partition", topic, partition)
	}
	e, _ := b.ends.Lookup(topic, partition)
	for _, o := range []kadm.ListedOffset{s, e} {
		if o.Err != nil {
			return 0, 0, refused(fmt.Sprintf("%s-%d", topic, partition), o.Err, "")
		}
	}
	return s.Offset, e.Offset, nil
}

// resolver turns a place into an offset for each partition.
func (p target) resolver(ctx context.Context, a *cluster, b bounds, topics ...string) (func(topic string, partition int32) (int64, error), error) {
	var timed kadm.ListedOffsets
	if p.kind == targetTime {
		var err error
		if timed, err = a.ListOffsetsAfterMilli(ctx, p.at.UnixMilli(), topics...); err != nil {
			return nil, err
		}
	}
	return func(topic string, partition int32) (int64, error) {
		start, end, err := b.of(topic, partition)
		if err != nil {
			return 0, err
		}
		switch p.kind {
		case targetStart:
			return start + p.n, nil
		case targetEnd:
			return end - p.n, nil
		case targetOffset:
			return p.n, nil
		}
		o, ok := timed.Lookup(topic, partition)
		if !ok {
			return 0, fmt.Errorf("%s-%d: no such partition", topic, partition)
		}
		if o.Err != nil {
			return 0, refused(fmt.Sprintf("%s-%d", topic, partition), o.Err, "")
		}
		if o.Offset < 0 { // nothing is that new
			return end, nil
		}
		return o.Offset, nil
	}, nil
}

// parsePartitions reads topic or topic:0,1,2, as --topic takes it; no partitions: all of them.
func parsePartitions(text string) (topic string, partitions []int32, err error) {
	topic, list, some := strings.Cut(text, ":")
	if topic == "" {
		return "", nil, usage("--topic %q names no topic", text)
	}
	if !some {
		return topic, nil, nil
	}
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
		if err != nil || n < 0 {
			return "", nil, usage("--topic %q: %q is no partition; it is of the form name or name:0,1,2", text, s)
		}
		partitions = append(partitions, int32(n))
	}
	return topic, partitions, nil
}
