package node

import (
	"fmt"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/connector"
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
		return topic.New(c.Broker, r)
	case "nexmark":
		return nexmark.NewSource(r)
	}
	return nil, fmt.Errorf("connector %q is not known: kafka and nexmark are", r.Connector)
}
