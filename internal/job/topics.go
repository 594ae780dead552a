package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/pgerr"
)

// checkTopics refuses a relation whose topic must be its own and is there already.
func (m *Manager) checkTopics(r *catalog.Relation) error {
	if _, ok := m.o.Broker.Topic(r.Topic); ok && r.HasChangelog() {
		return pgerr.Newf("42P07", "topic \"%s\", which would be the changelog of the sink, already exists", r.Topic).WithHint("Delete the topic.")
	}
	if t, ok := m.o.Broker.Topic(r.Topic); ok && r.Kind == catalog.Sink && keyless(r) && compacts(m.o.Broker, t.Configs()) {
		return pgerr.Newf("55000", "topic \"%s\" is compacted, and the sink's records have no key: compaction would drop them", r.Topic).
			WithHint("FORMAT UPSERT gives them the stream key, primary_key the columns that you name; or set the topic's cleanup.policy to delete.")
	}
	if r.Kind != catalog.Table {
		return nil
	}
	if _, ok := m.o.Broker.Topic(r.Topic); ok {
		return pgerr.Newf("42P07", "topic \"%s\" already exists, and a table needs one of its own", r.Topic).
			WithHint("Choose another name, or read the topic with CREATE SOURCE.")
	}
	return nil
}

// reader is what runs and reads the relation, if only by way of views; nil if there is nothing.
func reader(s *catalog.Snapshot, id uint64) *catalog.Relation {
	for _, d := range s.Dependents(id) {
		if d.Kind != catalog.View {
			return d
		}
		if r := reader(s, d.ID); r != nil {
			return r
		}
	}
	return nil
}

// letterConfigs are of a topic for dead letters: they have the times of their records, by which those of old records would go at once, so that
// their size is what bounds them.
var letterConfigs = map[string]string{"retention.ms": "-1", "retention.bytes": "1073741824", "segment.bytes": "67108864"}

// makeTopics makes the topics that the relation writes to, and the dead letters of a source, as far as they are not there.
func (m *Manager) makeTopics(r *catalog.Relation) error {
	switch r.Kind {
	case catalog.Table:
		configs := map[string]string{"retention.ms": "-1", "retention.bytes": "-1"}
		if !r.HasRowID() {
			configs["cleanup.policy"] = "compact"
		}
		_, err := m.ensureTopic(r.Topic, max(r.Partitions, 1), configs)
		return err
	case catalog.Sink:
		if r.Topic == "" {
			break // it writes nothing
		}
		if r.HasChangelog() {
			if _, err := m.ensureTopic(r.Topic, 1, changelogConfigs); err != nil { // one partition: its order is that of the target
				return err
			}
			break
		}
		if _, err := m.ensureTopic(r.Topic, m.o.Broker.DefaultPartitions(), nil); err != nil {
			return err
		}
	case catalog.Source:
		if r.Connector == "kafka" {
			_, err := m.ensureTopic(r.Name+".errors", 1, letterConfigs)
			return err
		}
	}
	if r.Plan != nil {
		for _, n := range r.Plan.Nodes {
			if topic := lateTopic(n); topic != "" {
				if _, err := m.ensureTopic(topic, 1, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// doomedPrefix is of the metadata keys that name topics whose table or sink is dropped and which are not deleted yet.
const doomedPrefix = "job/doomed/"

func doomedKey(t *broker.Topic) string { return doomedPrefix + t.ID.String() }

// ownTopic is the topic that goes with the relation, nil if there is none.
func (m *Manager) ownTopic(r *catalog.Relation) *broker.Topic {
	if r.Kind != catalog.Table && !r.HasChangelog() {
		return nil
	}
	t, _ := m.o.Broker.Topic(r.Topic)
	return t
}

// deleteTopics deletes the topics of tables, and the changelogs of sinks, that are dropped. What fails is done at the next start.
func (m *Manager) deleteTopics(ctx context.Context, dropped []*catalog.Relation) {
	for _, r := range dropped {
		if t := m.ownTopic(r); t != nil {
			if err := m.deleteTopic(ctx, t); err != nil {
				m.log.Warn("deleting the topic of what was dropped", "topic", t.Name, "err", err)
			}
		}
	}
}

func (m *Manager) deleteTopic(ctx context.Context, t *broker.Topic) error {
	if err := m.o.Broker.DeleteTopic(ctx, t.Name); err != nil && !errors.Is(err, broker.ErrUnknownTopic) {
		return err
	}
	u := m.o.Broker.NewUnit()
	u.AddMeta(doomedKey(t), nil)
	_, _, err := u.Commit(ctx)
	return err
}

// restoreTopics finishes what a crash has interrupted: topics of dropped tables are deleted, and those of relations are made.
func (m *Manager) restoreTopics(ctx context.Context) error {
	doomed := map[string]string{}
	err := m.o.DB.ScanMeta(doomedPrefix, func(key string, name []byte) error {
		doomed[key] = string(name)
		return nil
	})
	if err != nil {
		return err
	}
	for key, name := range doomed {
		t, ok := m.o.Broker.Topic(name)
		if ok && doomedKey(t) == key {
			if err := m.deleteTopic(ctx, t); err != nil {
				return fmt.Errorf("deleting the topic %q of what was dropped: %w", name, err)
			}
			continue
		}
		u := m.o.Broker.NewUnit()
		u.AddMeta(key, nil)
		if _, _, err := u.Commit(ctx); err != nil {
			return err
		}
	}
	for _, r := range m.Catalog().Relations() {
		if err := m.makeTopics(r); err != nil {
			m.log.Error("making the topics of a relation", "relation", r.QualifiedName(), "err", err)
		}
	}
	return nil
}
