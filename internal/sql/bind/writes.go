package bind

import (
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// writes lists the topics that the engine writes for a relation, beside a table's own: a sink's results, late rows, dead letters. A topic of a cluster
// has its servers in front.
func writes(r *catalog.Relation) []string {
	var topics []string
	if r.Kind == catalog.Sink && r.Connector == "kafka" {
		topics = append(topics, topicOf(r))
	}
	if late := r.Options["late_topic"]; late != "" {
		topics = append(topics, late)
	}
	if r.Kind == catalog.Source && r.Connector == "kafka" {
		topics = append(topics, r.Name+".errors")
	}
	return topics
}

// topicOf names the topic that a source reads or a sink writes; in a cluster it is another one than here.
func topicOf(r *catalog.Relation) string {
	if r.Outside() {
		return r.Options[catalog.ServersOption] + " " + r.Options["topic"]
	}
	return r.Topic
}

// checkWrites refuses what would write into a topic that is not its to write: a table's, in which every record is a row that has been checked; a sink's
// changelog; and one that it reads itself, directly or through others, which would never come to an end.
func (b *binder) checkWrites(r *catalog.Relation, at ast.Node) error {
	topics := writes(r)
	if len(topics) == 0 {
		return nil
	}
	read := map[string]bool{}
	if r.Kind == catalog.Source {
		read[topicOf(r)] = true
	}
	b.readBy(r, read, map[uint64]bool{})
	for _, topic := range topics {
		if strings.HasPrefix(topic, "leat.sink.") && strings.HasSuffix(topic, ".changelog") {
			return b.errorf(at, pgerr.InvalidName, "topic \"%s\" has a name that is kept for what a sink delivers to a cluster", topic).WithHint("Choose another name.")
		}
		for _, o := range b.env.Catalog.Relations() {
			if o.Kind == catalog.Table && o.Topic == topic {
				e := b.errorf(at, pgerr.DuplicateObject, "topic \"%s\" belongs to table %s, which a %s cannot write", topic, o.QualifiedName(), r.Kind)
				if r.Kind == catalog.Source {
					return e.WithHint("It would be the topic of the source's dead letters: give the source another name.")
				}
				return e
			}
		}
		if read[topic] {
			return b.errorf(at, pgerr.InvalidObjectDefinition, "%s \"%s\" would write to what it reads, topic \"%s\", without end", r.Kind, r.Name, topic).
				WithHint("Choose another topic.")
		}
	}
	return nil
}

// readBy adds the topics that the relation reads, through whatever lies between.
func (b *binder) readBy(r *catalog.Relation, read map[string]bool, seen map[uint64]bool) {
	for _, id := range r.DependsOn {
		on := b.env.Catalog.Relation(id)
		if on == nil || seen[id] {
			continue
		}
		seen[id] = true
		b.readBy(on, read, seen)
		if on.Kind != catalog.Source || on.Connector != "kafka" || read[topicOf(on)] {
			continue
		}
		read[topicOf(on)] = true
		for _, writer := range b.env.Catalog.Relations() {
			// Dead letters are left out: to read them, mend them and send them again is what they are for.
			if writer.Kind != catalog.Source && slices.Contains(writes(writer), topicOf(on)) {
				b.readBy(writer, read, seen)
			}
		}
	}
}
