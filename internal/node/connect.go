package node

import (
	"fmt"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/kafka"
	"github.com/leat-io/leat/internal/connector/nexmark"
	"github.com/leat-io/leat/internal/connector/topic"
)

// connect opens the connector of a source, or of a table's topic.
func (c *Core) connect(r *catalog.Relation) (connector.Source, error) {
	if r.Kind == catalog.Table {
		return topic.New(c.Broker, r)
	}
	switch r.Connector {
	case "kafka":
		if r.Outside() {
			return kafka.NewSource(r, kafka.Options{Logger: c.log, Clock: c.o.Clock, Budget: c.clusters})
		}
		return topic.New(c.Broker, r)
	case "nexmark":
		return nexmark.NewSource(r)
	}
	return nil, fmt.Errorf("connector %q is not known: kafka and nexmark are", r.Connector)
}

// target makes the target of a sink to something outside.
func (c *Core) target(r *catalog.Relation, id string) (connector.Target, error) {
	if r.Connector == "kafka" {
		return kafka.NewTarget(kafka.ClusterOf(r), id, c.log), nil
	}
	return nil, fmt.Errorf("connector %q writes to nothing outside: kafka does", r.Connector)
}
