package broker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/record"
)

// TopicID names a topic for ever; one that is made again under an old name has another.
type TopicID [16]byte

// String is the id in hexadecimal; it names the topic's folder and its metadata.
func (id TopicID) String() string { return hex.EncodeToString(id[:]) }

func newTopicID() TopicID {
	var id TopicID
	for {
		_, _ = rand.Read(id[:]) // never fails (documented)
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id[0] != 0 && id[0] != '-' {
			return id
		}
	}
}

// TopicSpec is a topic to be made.
type TopicSpec struct {
	Name       string
	Partitions int32 // 0 or less: the default
	Configs    map[string]string
}

// RecordCheck judges one record that a client produces into a topic. A message refuses the record, and with it the batch; empty accepts.
// The record is valid during the call only. It runs before the batch is ordered, in the client's goroutine.
type RecordCheck func(partition int32, r *record.Record) (message string)

// Topic is one topic. Its partitions only ever grow.
type Topic struct {
	Name string
	ID   TopicID

	b          *Broker
	configs    map[string]string
	settings   settings
	partitions []*Partition
	check      atomic.Pointer[RecordCheck]
}

// storedTopic is a topic's metadata, under "topic/<id>".
type storedTopic struct {
	Version    int               `json:"v"`
	Name       string            `json:"name"`
	Partitions int32             `json:"partitions"`
	Configs    map[string]string `json:"configs,omitempty"`
}

const topicPrefix = "topic/"

func (t *Topic) stored() []byte {
	raw, _ := json.Marshal(storedTopic{Version: 1, Name: t.Name, Partitions: int32(len(t.partitions)), Configs: t.configs})
	return raw
}

// Partition returns partition i, or nil.
func (t *Topic) Partition(i int32) *Partition {
	if i < 0 || int(i) >= len(t.partitions) {
		return nil
	}
	return t.partitions[i]
}

// Partitions returns all partitions; the slice is the topic's own.
func (t *Topic) Partitions() []*Partition { return t.partitions }

// Configs returns the settings that were given explicitly.
func (t *Topic) Configs() map[string]string { return maps.Clone(t.configs) }

// Config returns the value of a setting in force, and whether it was given explicitly.
func (t *Topic) Config(name string) (value string, explicit bool) {
	if v, ok := t.configs[name]; ok {
		return v, true
	}
	if v, ok := t.b.o.TopicDefaults[name]; ok {
		return v, false
	}
	def, _ := topicConfig(name)
	return def.Default, false
}

// SetRecordCheck installs, or with nil removes, the judge of what clients produce into this topic. The engine's own units are not judged.
func (t *Topic) SetRecordCheck(fn RecordCheck) {
	if fn == nil {
		t.check.Store(nil)
		return
	}
	t.check.Store(&fn)
}

// Topic returns the topic of that name.
func (b *Broker) Topic(name string) (*Topic, bool) {
	b.topicsMu.RLock()
	defer b.topicsMu.RUnlock()
	t, ok := b.byName[name]
	return t, ok
}

// TopicByID returns the topic of that id.
func (b *Broker) TopicByID(id TopicID) (*Topic, bool) {
	b.topicsMu.RLock()
	defer b.topicsMu.RUnlock()
	t, ok := b.byID[id]
	return t, ok
}

// Topics returns all topics by name.
func (b *Broker) Topics() []*Topic {
	b.topicsMu.RLock()
	defer b.topicsMu.RUnlock()
	out := slices.Collect(maps.Values(b.byName))
	slices.SortFunc(out, func(x, y *Topic) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// CheckTopicName refuses names that Kafka refuses.
func CheckTopicName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return fmt.Errorf("%w: %q (1 to 249 characters, neither . nor ..)", ErrInvalidTopic, clip(name))
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			continue
		}
		return fmt.Errorf("%w: %q (letters, digits, '.', '_' and '-' only)", ErrInvalidTopic, clip(name))
	}
	return nil
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

// CreateTopic makes a topic; it returns when that is durable.
func (b *Broker) CreateTopic(ctx context.Context, spec TopicSpec) (*Topic, error) {
	topics, errs := b.CreateTopics(ctx, []TopicSpec{spec}, false)
	return topics[0], errs[0]
}

// CreateTopics makes several topics in one journal unit; each has its own result. With validateOnly nothing is made.
func (b *Broker) CreateTopics(ctx context.Context, specs []TopicSpec, validateOnly bool) ([]*Topic, []error) {
	b.ddl.Lock()
	defer b.ddl.Unlock()
	topics, errs := make([]*Topic, len(specs)), make([]error, len(specs))
	u := journal.NewUnit()
	partitions, fresh := b.partitions, map[string]bool{}
	any := false
	for i, spec := range specs {
		if spec.Partitions <= 0 {
			spec.Partitions = b.o.DefaultPartitions
		}
		if errs[i] = b.checkSpec(spec, partitions); errs[i] != nil {
			continue
		}
		if _, ok := b.Topic(spec.Name); ok || fresh[spec.Name] {
			errs[i] = fmt.Errorf("%w: %q", ErrTopicExists, spec.Name)
			continue
		}
		fresh[spec.Name] = true
		partitions += int(spec.Partitions)
		topics[i] = b.newTopic(newTopicID(), spec.Name, spec.Partitions, maps.Clone(spec.Configs))
		kv.AppendMeta(u, topicPrefix+topics[i].ID.String(), topics[i].stored())
		any = true
	}
	if validateOnly || !any {
		u.Free()
		return topics, errs
	}
	fail := func(err error) ([]*Topic, []error) {
		for i := range topics {
			if errs[i] == nil {
				topics[i], errs[i] = nil, err
			}
		}
		return topics, errs
	}
	if b.low.Load() {
		u.Free()
		return fail(ErrStorage)
	}
	// Whatever can fail does so before the topics are durable: a topic that is in the metadata has its logs.
	for i, t := range topics {
		if t == nil {
			continue
		}
		if err := b.openLogs(t); err != nil {
			u.Free()
			b.closeLogs(topics[:i+1])
			return fail(err)
		}
	}
	lsn, err := b.journal.Commit(u, nil)
	if err != nil {
		b.closeLogs(topics)
		return fail(err)
	}
	// The unit is in the journal and will be durable whatever becomes of the caller, so the wait cannot be called off.
	if err := b.journal.Wait(context.WithoutCancel(ctx), lsn); err != nil {
		return fail(err)
	}
	b.topicsMu.Lock()
	for _, t := range topics {
		if t != nil {
			b.install(t)
		}
	}
	b.topicsMu.Unlock()
	return topics, errs
}

func (b *Broker) checkSpec(spec TopicSpec, partitions int) error {
	if err := CheckTopicName(spec.Name); err != nil {
		return err
	}
	if int(spec.Partitions)+partitions > b.o.MaxPartitions {
		return fmt.Errorf("%w: %d more would be over the node's limit of %d", ErrPartitionCount, spec.Partitions, b.o.MaxPartitions)
	}
	return CheckConfigs(spec.Configs)
}

// CreatePartitions lets a topic grow to total partitions, for a client. Records stay where they are; keys may map to other partitions from then on.
func (b *Broker) CreatePartitions(ctx context.Context, name string, total int32, validateOnly bool) error {
	b.ddl.Lock()
	defer b.ddl.Unlock()
	t, ok := b.Topic(name)
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownTopic, clip(name))
	}
	old := int32(len(t.partitions))
	if total <= old {
		return fmt.Errorf("%w: %q has %d, and partitions can only be added", ErrPartitionCount, name, old)
	}
	if int(total-old)+b.partitions > b.o.MaxPartitions {
		return fmt.Errorf("%w: %d more would be over the node's limit of %d", ErrPartitionCount, total-old, b.o.MaxPartitions)
	}
	if err := b.allowed(t, TopicChange{Partitions: total}); err != nil || validateOnly {
		return err
	}
	grown := b.newTopic(t.ID, t.Name, total, t.configs)
	copy(grown.partitions, t.partitions)
	added := &Topic{partitions: grown.partitions[old:]}
	if err := b.openLogs(grown); err != nil {
		b.closeLogs([]*Topic{added})
		return err
	}
	lsn, err := b.journal.Commit(metaUnit(map[string][]byte{topicPrefix + t.ID.String(): grown.stored()}), nil)
	if err != nil {
		b.closeLogs([]*Topic{added})
		return err
	}
	if err := b.journal.Wait(context.WithoutCancel(ctx), lsn); err != nil {
		return err
	}
	b.replace(t, grown)
	return nil
}

// ChangeConfigs replaces the explicit settings of a topic, for a client, by what change makes of them.
func (b *Broker) ChangeConfigs(ctx context.Context, name string, validateOnly bool, change func(old map[string]string) (map[string]string, error)) error {
	b.ddl.Lock()
	defer b.ddl.Unlock()
	t, ok := b.Topic(name)
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownTopic, clip(name))
	}
	configs, err := change(t.Configs())
	if err != nil {
		return err
	}
	if err := CheckConfigs(configs); err != nil {
		return err
	}
	if configs == nil {
		configs = map[string]string{}
	}
	if err := b.allowed(t, TopicChange{Configs: configs}); err != nil || validateOnly {
		return err
	}
	changed := b.newTopic(t.ID, t.Name, 0, maps.Clone(configs))
	changed.partitions = t.partitions
	if err := b.commitMeta(context.WithoutCancel(ctx), map[string][]byte{topicPrefix + t.ID.String(): changed.stored()}); err != nil {
		return err
	}
	b.replace(t, changed)
	for _, p := range changed.partitions {
		p.log.SetConfig(changed.settings.logConfig(p.Index))
	}
	return nil
}

// replace puts a changed copy of a topic in the place of the old one. Partitions are shared between both.
func (b *Broker) replace(old, changed *Topic) {
	changed.check.Store(old.check.Load())
	b.topicsMu.Lock()
	b.uninstall(old)
	b.install(changed)
	b.topicsMu.Unlock()
}

// TopicChange is what a client asks to be done to a topic.
type TopicChange struct {
	Delete     bool              // the topic is to go
	Records    bool              // its oldest records are to go
	Partitions int32             // there are to be so many; 0: as many as there are
	Configs    map[string]string // these are to be its explicit settings; nil: those it has
}

// TopicCheck knows what clients may not do to a topic: its error, an ErrTopicInUse, says why not. It must not wait for anything.
type TopicCheck func(t *Topic, c TopicChange) error

// SetTopicCheck installs the check.
func (b *Broker) SetTopicCheck(fn TopicCheck) { b.topicCheck.Store(&fn) }

// allowed is what the check says.
func (b *Broker) allowed(t *Topic, c TopicChange) error {
	if check := b.topicCheck.Load(); check != nil {
		return (*check)(t, c)
	}
	return nil
}

// Setting is what a topic setting is under explicit settings.
func (b *Broker) Setting(configs map[string]string, name string) string {
	if v, ok := configs[name]; ok {
		return v
	}
	v, _ := b.TopicDefault(name)
	return v
}

// AwaitTopicChanges returns when no topic is being made, changed or deleted that was when it was called: a deletion has been checked by what was known
// before, or will be by what is known now.
func (b *Broker) AwaitTopicChanges() {
	b.ddl.Lock()
	defer b.ddl.Unlock() //nolint:staticcheck // waiting is all there is to do
}

// DeleteTopicOfClient is DeleteTopic for a client, who may not delete what is in use.
func (b *Broker) DeleteTopicOfClient(ctx context.Context, name string) error {
	return b.deleteTopic(ctx, name, b.allowed)
}

// DeleteTopic deletes a topic: durably from the metadata first, then its files. Batches that are ordered behind the deletion vanish.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	return b.deleteTopic(ctx, name, nil)
}

func (b *Broker) deleteTopic(ctx context.Context, name string, check TopicCheck) error {
	b.ddl.Lock()
	defer b.ddl.Unlock()
	t, ok := b.Topic(name)
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownTopic, clip(name))
	}
	if check != nil {
		if err := check(t, TopicChange{Delete: true}); err != nil {
			return err
		}
	}
	u := journal.NewUnit()
	kv.AppendMeta(u, topicPrefix+t.ID.String(), nil)
	t.forgetStarts(u)
	lsn, err := b.journal.Commit(u, func(journal.LSN) {
		for _, p := range t.partitions {
			p.deleted.Store(true)
		}
	})
	if err != nil {
		return err
	}
	if err := b.journal.Wait(context.WithoutCancel(ctx), lsn); err != nil {
		return err
	}
	b.deletions.Add(1)
	b.topicsMu.Lock()
	b.uninstall(t)
	b.topicsMu.Unlock()
	b.forget(t)
	return nil
}

// forget drops what is held of a deleted topic, wakes who waits for it, and removes its files.
func (b *Broker) forget(t *Topic) {
	for _, p := range t.partitions {
		p.onAppend.wake()
		p.onDurable.wake()
		b.size.Add(-p.size.Swap(0))
		if err := p.log.Delete(); err != nil {
			b.log.Warn("files of a deleted topic are left behind until the next start", "topic", t.Name, "partition", p.Index, "err", err)
		}
	}
	if b.txns != nil {
		b.txns.topicDeleted(t.Name)
	}
	if b.groups != nil {
		b.groups.topicDeleted(t.Name)
	}
}

func (b *Broker) newTopic(id TopicID, name string, partitions int32, configs map[string]string) *Topic {
	t := &Topic{Name: name, ID: id, b: b, configs: configs, settings: parseSettings(configs, b.o.TopicDefaults)}
	t.partitions = make([]*Partition, partitions)
	for i := range t.partitions {
		p := &Partition{Index: int32(i), b: b}
		p.topic.Store(t)
		t.partitions[i] = p
	}
	return t
}

// openLogs gives each new partition its log; no file is opened yet.
func (b *Broker) openLogs(t *Topic) error {
	for _, p := range t.partitions {
		if p.log != nil {
			continue
		}
		log, err := b.logs.Open(p.String(), t.ID, t.settings.logConfig(p.Index))
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		p.log = log
		end := log.EndOffset()
		p.next = end
		p.appended.Store(end)
		p.highWater.Store(end)
		p.decided.Store(end)
		p.stable.Store(end)
	}
	return nil
}

// closeLogs undoes openLogs for topics that nobody knows.
func (b *Broker) closeLogs(topics []*Topic) {
	for _, t := range topics {
		if t == nil {
			continue
		}
		for _, p := range t.partitions {
			if p.log == nil {
				continue
			}
			if err := p.log.Close(); err != nil {
				b.log.Warn("the log of a topic that is not made is not closed", "partition", p.String(), "err", err)
			}
			p.log = nil
		}
	}
}

// install makes a topic known; topicsMu is held.
func (b *Broker) install(t *Topic) {
	for _, p := range t.partitions {
		p.topic.Store(t)
	}
	b.byName[t.Name], b.byID[t.ID] = t, t
	b.partitions += len(t.partitions)
	b.changes.Add(1)
	b.onTopics.wake()
}

// uninstall undoes install; topicsMu is held.
func (b *Broker) uninstall(t *Topic) {
	delete(b.byName, t.Name)
	delete(b.byID, t.ID)
	b.partitions -= len(t.partitions)
	b.changes.Add(1)
}

// topicImage is the topics as groups see them, at one change of the topics.
type topicImage struct {
	change uint64
	topics *group.Topics
}

// Image returns the topics as they are now, for groups. It is made anew only when they have changed.
func (b *Broker) Image() *group.Topics {
	if img := b.image.Load(); img != nil && img.change == b.changes.Load() {
		return img.topics
	}
	b.topicsMu.RLock()
	all := make([]group.Topic, 0, len(b.byName))
	for _, t := range b.byName {
		all = append(all, group.Topic{Name: t.Name, ID: group.TopicID(t.ID), Partitions: int32(len(t.partitions))})
	}
	img := &topicImage{change: b.changes.Load()}
	b.topicsMu.RUnlock()
	img.topics = group.NewTopics(all)
	b.image.Store(img)
	return img.topics
}

// loadTopics makes the topics in memory those of the metadata.
func (b *Broker) loadTopics() error {
	seen := map[TopicID]bool{}
	err := b.kv.ScanMeta(topicPrefix, func(key string, value []byte) error {
		id, err := parseTopicID(strings.TrimPrefix(key, topicPrefix))
		if err != nil {
			return fmt.Errorf("metadata key %q: %w", key, err)
		}
		seen[id] = true
		return b.loadTopic(id, value)
	})
	if err != nil {
		return fmt.Errorf("broker: load topics: %w", err)
	}
	for _, t := range b.Topics() {
		if !seen[t.ID] {
			if err := b.removeDeleted(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeDeleted takes out a topic that was deleted in the part of the journal that was replayed.
func (b *Broker) removeDeleted(t *Topic) error {
	b.topicsMu.Lock()
	b.uninstall(t)
	b.topicsMu.Unlock()
	for _, p := range t.partitions {
		p.deleted.Store(true)
		b.size.Add(-p.size.Swap(0))
		if err := p.log.Delete(); err != nil {
			return fmt.Errorf("remove %s, which was deleted: %w", p, err)
		}
	}
	return nil
}

func (b *Broker) loadTopic(id TopicID, raw []byte) error {
	var s storedTopic
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("topic %s: stored metadata is malformed: %w", id, err)
	}
	if s.Version != 1 {
		return fmt.Errorf("topic %q: stored metadata has version %d, this binary reads version 1: use the binary that wrote it", s.Name, s.Version)
	}
	if s.Partitions < 0 || int(s.Partitions) > 10_000_000 {
		return fmt.Errorf("topic %q: stored metadata names %d partitions", s.Name, s.Partitions)
	}
	t := b.newTopic(id, s.Name, s.Partitions, s.Configs)
	if old, ok := b.TopicByID(id); ok {
		copy(t.partitions, old.partitions)
		if err := b.openLogs(t); err != nil {
			return err
		}
		b.replace(old, t)
		return nil
	}
	if old, ok := b.Topic(t.Name); ok {
		// A name is of one topic at a time: the other one was deleted before this one was made, and its folder is this one's now.
		if err := b.removeDeleted(old); err != nil {
			return err
		}
	}
	if err := b.openLogs(t); err != nil {
		return err
	}
	b.topicsMu.Lock()
	b.install(t)
	b.topicsMu.Unlock()
	return nil
}

func parseTopicID(s string) (TopicID, error) {
	var id TopicID
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%q is no topic id", clip(s))
	}
	copy(id[:], raw)
	return id, nil
}
