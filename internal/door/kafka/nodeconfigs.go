package kafka

import (
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nodeConfig is one setting of the node, under the name that Kafka has for it.
type nodeConfig struct {
	name, value string
	kind        kmsg.ConfigType
}

// nodeConfigs are the node's settings as DescribeConfigs shows them. Debezium reads default.replication.factor, others num.partitions; some tools take the
// cluster's version from inter.broker.protocol.version, which brokers of 4.0 and later do not have any more.
func (c call) nodeConfigs() []nodeConfig {
	o, b, bounds := &c.s.o, c.s.b, c.s.b.Bounds()
	number := func(n int) string { return strconv.Itoa(n) }
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	minutes := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Minute), 10) }
	const (
		boolean, text, integer, short, long = kmsg.ConfigTypeBoolean, kmsg.ConfigTypeString, kmsg.ConfigTypeInt, kmsg.ConfigTypeShort, kmsg.ConfigTypeLong
		list                                = kmsg.ConfigTypeList
	)
	host, port := c.advertised()
	listener := "PLAINTEXT://" + host + ":" + number(int(port))
	out := []nodeConfig{
		{"advertised.listeners", listener, list},
		{"auto.create.topics.enable", strconv.FormatBool(b.AutoCreates()), boolean},
		{"broker.id", number(int(o.NodeID)), integer},
		{"broker.rack", "", text},
		{"connections.max.idle.ms", ms(o.IdleTimeout), long},
		{"controlled.shutdown.enable", "true", boolean},
		{"default.replication.factor", "1", integer},
		{"delete.topic.enable", "true", boolean},
		{"fetch.max.bytes", number(int(o.MaxFetchBytes)), integer},
		{"group.consumer.assignment.interval.ms", ms(bounds.ConsumerAssignment), integer},
		{"group.consumer.assignors", "uniform,range", list},
		{"group.consumer.heartbeat.interval.ms", ms(bounds.ConsumerHeartbeat), integer},
		{"group.consumer.max.assignment.interval.ms", ms(bounds.ConsumerMaxAssignment), integer},
		{"group.consumer.max.heartbeat.interval.ms", ms(bounds.ConsumerMaxHeartbeat), integer},
		{"group.consumer.max.session.timeout.ms", ms(bounds.ConsumerMaxSession), integer},
		{"group.consumer.max.size", number(bounds.MaxGroupSize), integer},
		{"group.consumer.migration.policy", "bidirectional", text},
		{"group.consumer.min.assignment.interval.ms", ms(bounds.ConsumerMinAssignment), integer},
		{"group.consumer.min.heartbeat.interval.ms", ms(bounds.ConsumerMinHeartbeat), integer},
		{"group.consumer.min.session.timeout.ms", ms(bounds.ConsumerMinSession), integer},
		{"group.consumer.session.timeout.ms", ms(bounds.ConsumerSession), integer},
		{"group.coordinator.rebalance.protocols", "classic,consumer", list},
		{"group.initial.rebalance.delay.ms", ms(bounds.InitialRebalanceDelay), integer},
		{"group.max.session.timeout.ms", ms(bounds.MaxSession), integer},
		{"group.max.size", number(bounds.MaxGroupSize), integer},
		{"group.min.session.timeout.ms", ms(bounds.MinSession), integer},
		{"inter.broker.protocol.version", "4.4", text},
		{"listeners", listener, list},
		{"log.cleaner.enable", "true", boolean},
		{"log.dirs", b.Dir(), text},
		{"log.retention.check.interval.ms", ms(bounds.RetentionInterval), long},
		{"max.connections", number(o.MaxConnections), integer},
		{"max.incremental.fetch.session.cache.slots", number(o.MaxSessions), integer},
		{"node.id", number(int(o.NodeID)), integer},
		{"num.partitions", number(int(b.DefaultPartitions())), integer},
		{"offset.metadata.max.bytes", number(broker.MaxOffsetMetaLen), integer},
		{"offsets.retention.minutes", minutes(bounds.OffsetsRetention), integer},
		{"offsets.topic.replication.factor", "1", short},
		{"process.roles", "broker,controller", list},
		{"producer.id.expiration.ms", ms(bounds.ProducerExpiry), integer},
		{"socket.request.max.bytes", number(int(o.MaxRequestBytes)), integer},
		{"transaction.max.timeout.ms", ms(bounds.TransactionMaxTimeout), integer},
		{"transaction.state.log.min.isr", "1", integer},
		{"transaction.state.log.replication.factor", "1", short},
		{"transactional.id.expiration.ms", ms(bounds.TransactionalIDExpiry), integer},
	}
	for _, def := range broker.TopicConfigs {
		node, ok := broker.NodeDefaultOf(def.Name)
		if !ok {
			continue
		}
		value, _ := b.TopicDefault(def.Name)
		out = append(out, nodeConfig{node, value, kmsg.ConfigType(def.Type)})
		if strings.HasPrefix(node, "log.retention.ms") { // tools read it in hours
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 {
				out = append(out, nodeConfig{"log.retention.hours", strconv.FormatInt(n/3_600_000, 10), integer})
			}
		}
	}
	return out
}
