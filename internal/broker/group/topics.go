package group

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
)

// TopicID names a topic for ever.
type TopicID [16]byte

// MarshalText and UnmarshalText are the form in which ids are stored.
func (id TopicID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (id *TopicID) UnmarshalText(text []byte) error {
	if len(text) != 2*len(id) {
		return errors.New("a topic id has 32 hexadecimal digits")
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// Topic is what a group needs to know of one.
type Topic struct {
	Name       string
	ID         TopicID
	Partitions int32
}

// Topics is the topics that there are, at one instant. It never changes.
type Topics struct {
	byName map[string]Topic
	byID   map[TopicID]Topic
	names  []string
}

// NewTopics returns the topics as an image that groups share.
func NewTopics(all []Topic) *Topics {
	t := &Topics{byName: make(map[string]Topic, len(all)), byID: make(map[TopicID]Topic, len(all)), names: make([]string, 0, len(all))}
	for _, topic := range all {
		t.byName[topic.Name], t.byID[topic.ID] = topic, topic
		t.names = append(t.names, topic.Name)
	}
	slices.Sort(t.names)
	return t
}

var noTopics = NewTopics(nil)

// ByName returns the topic of that name.
func (t *Topics) ByName(name string) (Topic, bool) {
	topic, ok := t.byName[name]
	return topic, ok
}

// ByID returns the topic of that id.
func (t *Topics) ByID(id TopicID) (Topic, bool) {
	topic, ok := t.byID[id]
	return topic, ok
}

// maxRegexLen bounds an expression; what it compiles to is bounded by package regexp.
const maxRegexLen = 4096

// compile reads a subscription's expression, which must match a whole name. Its syntax is RE2's, as in Kafka.
func compile(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxRegexLen {
		return nil, errors.New("the regular expression is too long")
	}
	return regexp.Compile("^(?:" + expr + ")$")
}

// matching returns the names that match, in order.
func (t *Topics) matching(re *regexp.Regexp) []string {
	var out []string
	for _, name := range t.names {
		if re.MatchString(name) {
			out = append(out, name)
		}
	}
	return out
}

// Partitions is a set of partitions by topic, each list in order.
type Partitions map[TopicID][]int32

func (p Partitions) size() (n int) {
	for _, list := range p {
		n += len(list)
	}
	return n
}

func (p Partitions) has(id TopicID, partition int32) bool {
	_, ok := slices.BinarySearch(p[id], partition)
	return ok
}

func (p Partitions) equal(o Partitions) bool {
	if len(p) != len(o) {
		return false
	}
	for id, list := range p {
		if !slices.Equal(list, o[id]) {
			return false
		}
	}
	return true
}

// ids returns the topics of the set in a fixed order.
func (p Partitions) ids() []TopicID { return sortedIDs(p) }

func sortedIDs[V any](m map[TopicID]V) []TopicID {
	out := make([]TopicID, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	slices.SortFunc(out, compareIDs)
	return out
}

func compareIDs(a, b TopicID) int { return bytes.Compare(a[:], b[:]) }

// held is what a member holds: each partition with the epoch at which it got it.
type held map[TopicID]map[int32]int32

// MarshalJSON writes, for each topic, partitions in order, each with its epoch: {"<id>": [0, 7, 1, 7]}.
func (h held) MarshalJSON() ([]byte, error) {
	dst := []byte{'{'}
	var order []int32
	for i, id := range sortedIDs(h) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = hex.AppendEncode(dst, id[:])
		dst = append(dst, `":[`...)
		order = order[:0]
		for p := range h[id] {
			order = append(order, p)
		}
		slices.Sort(order)
		for j, p := range order {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(p), 10)
			dst = append(dst, ',')
			dst = strconv.AppendInt(dst, int64(h[id][p]), 10)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *held) UnmarshalJSON(raw []byte) error {
	var flat map[TopicID][]int32
	if err := json.Unmarshal(raw, &flat); err != nil {
		return err
	}
	*h = make(held, len(flat))
	for id, list := range flat {
		if len(list)%2 != 0 {
			return errors.New("a partition without an epoch")
		}
		for i := 0; i < len(list); i += 2 {
			(*h).put(id, list[i], list[i+1])
		}
	}
	return nil
}

func (h held) partitions() Partitions {
	out := make(Partitions, len(h))
	for id, list := range h {
		for p := range list {
			out[id] = append(out[id], p)
		}
		slices.Sort(out[id])
	}
	return out
}

func (h held) has(id TopicID, partition int32) bool {
	_, ok := h[id][partition]
	return ok
}

func (h held) put(id TopicID, partition, epoch int32) {
	if h[id] == nil {
		h[id] = map[int32]int32{}
	}
	h[id][partition] = epoch
}

func (h held) samePlaces(o held) bool {
	if len(h) != len(o) {
		return false
	}
	for id, list := range h {
		other := o[id]
		if len(list) != len(other) {
			return false
		}
		for p := range list {
			if _, ok := other[p]; !ok {
				return false
			}
		}
	}
	return true
}
