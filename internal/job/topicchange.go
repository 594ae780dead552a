package job

import (
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
)

// checkTopicChange refuses what clients must not do to the topic of a relation: what would take from a table or a changelog the records that it is made
// of, or from a job what it reads; and compaction where it would drop all records, since they have no keys.
func (m *Manager) checkTopicChange(t *broker.Topic, c broker.TopicChange) error {
	s := m.coming.Load()
	if s == nil {
		s = m.Catalog()
	}
	for _, r := range s.Relations() {
		why := ""
		switch {
		case r.Topic != t.Name:
		case r.Kind == catalog.Table:
			why = m.tableRefuses(r, c)
		case r.HasChangelog():
			why = m.changelogRefuses(r, c)
		case c.Delete && r.Kind == catalog.Source && !r.Outside():
			if d := reader(s, r.ID); d != nil {
				why = fmt.Sprintf("%s \"%s\" reads it; drop that first", d.Kind, d.QualifiedName())
			}
		}
		if why == "" && c.Configs != nil && compacts(m.o.Broker, c.Configs) && !compacts(m.o.Broker, t.Configs()) {
			why = compactionDrops(r, t.Name)
		}
		if why != "" {
			return fmt.Errorf("%w: %q: %s", broker.ErrTopicInUse, t.Name, why)
		}
	}
	return nil
}

func (m *Manager) tableRefuses(r *catalog.Relation, c broker.TopicChange) string {
	switch {
	case c.Delete:
		return fmt.Sprintf("it holds table \"%s\"; DROP TABLE deletes both", r.Name)
	case c.Records:
		return fmt.Sprintf("it holds the rows of table \"%s\"; DELETE takes rows away", r.Name)
	case c.Partitions != 0:
		return fmt.Sprintf("it holds table \"%s\", and the records of a key would be in two partitions, without an order; make a new table WITH (partitions = %d) and INSERT INTO it what SELECT gives of this one",
			r.Name, c.Partitions)
	case c.Configs == nil:
		return ""
	}
	deletes := deletes(m.o.Broker, c.Configs)
	switch {
	case deletes && !r.HasRowID():
		return fmt.Sprintf("it holds the rows of table \"%s\": cleanup.policy must be compact; DELETE takes rows away", r.Name)
	case deletes && m.expires(c.Configs):
		return fmt.Sprintf("it holds the rows of table \"%s\": retention.ms and retention.bytes must be -1; DELETE takes rows away", r.Name)
	}
	return ""
}

func (m *Manager) changelogRefuses(r *catalog.Relation, c broker.TopicChange) string {
	sink := fmt.Sprintf("it is the changelog of sink \"%s\"", r.Name)
	switch {
	case c.Delete:
		return sink + "; DROP SINK deletes both"
	case c.Records:
		return sink + ", which deletes what it has delivered"
	case c.Partitions != 0:
		return sink + ", whose order is that of one partition"
	case c.Configs != nil && (!deletes(m.o.Broker, c.Configs) || compacts(m.o.Broker, c.Configs) || m.expires(c.Configs)):
		return sink + ", which deletes what it has delivered: cleanup.policy must be delete, retention.ms and retention.bytes -1"
	}
	return ""
}

// compactionDrops says which of a relation's records in the topic have no keys; empty if there are none.
func compactionDrops(r *catalog.Relation, topic string) string {
	const drops = "which have no key: compaction would drop them"
	switch {
	case r.Kind == catalog.Source && r.Connector == "kafka" && topic == r.Name+".errors":
		return fmt.Sprintf("it gets the dead letters of source \"%s\", %s", r.Name, drops)
	case r.Kind == catalog.Sink && r.Topic == topic && keyless(r):
		return fmt.Sprintf("it gets the records of sink \"%s\", %s; FORMAT UPSERT or primary_key gives a sink's records keys", r.Name, drops)
	case r.Plan == nil:
		return ""
	}
	for _, n := range r.Plan.Nodes {
		if lateTopic(n) == topic {
			return fmt.Sprintf("it gets the late rows of %s \"%s\", %s", r.Kind, r.Name, drops)
		}
	}
	return ""
}

// keyless tells whether a sink's records have no keys.
func keyless(r *catalog.Relation) bool {
	if r.Plan == nil || r.HasChangelog() {
		return false
	}
	for _, n := range r.Plan.Nodes {
		if n.Sink != nil {
			return len(n.Sink.Key) == 0 && n.Sink.Format != "upsert"
		}
	}
	return false
}

func policies(b *broker.Broker, configs map[string]string, wanted string) bool {
	for p := range strings.SplitSeq(b.Setting(configs, "cleanup.policy"), ",") {
		if strings.TrimSpace(p) == wanted {
			return true
		}
	}
	return false
}

func compacts(b *broker.Broker, configs map[string]string) bool {
	return policies(b, configs, "compact")
}

func deletes(b *broker.Broker, configs map[string]string) bool { return policies(b, configs, "delete") }

// expires tells whether records go for their age or for the size of the log.
func (m *Manager) expires(configs map[string]string) bool {
	return m.o.Broker.Setting(configs, "retention.ms") != "-1" || m.o.Broker.Setting(configs, "retention.bytes") != "-1"
}
