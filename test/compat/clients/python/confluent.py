"""confluent-kafka (librdkafka) against the broker at $BOOTSTRAP."""

import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic,
                                   OffsetSpec, ResourceType)

from checks import BOOTSTRAP, HOUR_AGO, equal, report, topic

admin = AdminClient({"bootstrap.servers": BOOTSTRAP})


def settle(futures):
    return {k: f.result(30) for k, f in futures.items()}


def create(name, partitions=1):
    settle(admin.create_topics([NewTopic(name, partitions, 1)]))
    return name


def producer(**conf):
    return Producer({"bootstrap.servers": BOOTSTRAP, **{k.replace("_", "."): v for k, v in conf.items()}})


def send(p, name, values, **kw):
    errors = []
    for v in values:
        p.produce(name, v, on_delivery=lambda e, m: errors.append(e) if e else None, **kw)
    left = p.flush(30)
    if errors or left:
        raise AssertionError(f"{left} not delivered, errors {errors}")


def consumer(group, **conf):
    return Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group, "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, **{k.replace("_", "."): v for k, v in conf.items()}})


def take(c, n, seconds=30):
    """Reads n values, and for a moment more, so that one too many is seen."""
    out, end = [], time.monotonic() + seconds
    while len(out) < n and time.monotonic() < end:
        m = c.poll(0.2)
        if m is None:
            continue
        if m.error():
            raise KafkaException(m.error())
        out.append(m.value())
    m = c.poll(0.5)
    if m is not None and not m.error():
        out.append(m.value())
    return out


def values(prefix, n):
    return [f"{prefix}{i}".encode() for i in range(n)]


def compression(codec):
    name = create(topic("compress-" + codec))
    want = [v * 50 for v in values("v", 200)]
    send(producer(compression_type=codec), name, want)
    c = consumer(topic("g"))
    c.assign([TopicPartition(name, 0, 0)])
    equal(take(c, len(want)), want)
    c.close()


def by_timestamp():
    name = create(topic("time"))
    p = producer()
    for i in range(10):
        send(p, name, [str(i).encode()], timestamp=HOUR_AGO + i * 1000)
    c = consumer(topic("g"))
    [tp] = c.offsets_for_times([TopicPartition(name, 0, HOUR_AGO + 4500)], timeout=20)
    equal(tp.offset, 5)
    c.assign([tp])
    equal(take(c, 5), [b"5", b"6", b"7", b"8", b"9"])
    equal(c.get_watermark_offsets(TopicPartition(name, 0), timeout=20), (0, 10))
    c.close()


def rebalance(protocol, **conf):
    name, group = create(topic("balance"), 4), topic("balance-" + protocol)
    if protocol == "consumer":
        conf["group.protocol"] = "consumer"
    else:
        conf["session.timeout.ms"] = 6000
    owned = {}

    def joined(who):
        def on_assign(c, tps):
            owned[who] = owned.get(who, set()) | {t.partition for t in tps}
            (c.incremental_assign if cooperative else c.assign)(tps)

        def on_revoke(c, tps):
            owned[who] = owned.get(who, set()) - {t.partition for t in tps}
            (c.incremental_unassign if cooperative else lambda _: c.unassign())(tps)
        c = consumer(group, **conf)
        c.subscribe([name], on_assign=on_assign, on_revoke=on_revoke)
        return c

    cooperative = protocol == "consumer" or "cooperative" in conf.get("partition.assignment.strategy", "")

    def wait(members, want):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for c in members:
                c.poll(0.1)
            if sorted(len(s) for s in owned.values()) == want and len(set().union(*owned.values())) == 4:
                return
        raise AssertionError(f"assignments {owned}, wanted sizes {want}")

    a = joined("a")
    wait([a], [4])
    b = joined("b")
    wait([a, b], [2, 2])
    a.close()
    owned.pop("a")
    wait([b], [4])
    b.close()


def offsets():
    name, group = create(topic("offsets")), topic("offsets")
    send(producer(), name, values("o", 10))
    c = consumer(group)
    c.subscribe([name])
    equal(take(c, 10), values("o", 10))
    c.commit(offsets=[TopicPartition(name, 0, 7, metadata="here")], asynchronous=False)
    [tp] = c.committed([TopicPartition(name, 0)], timeout=20)
    equal((tp.offset, tp.metadata), (7, "here"))
    c.close()
    c = consumer(group)
    c.subscribe([name])
    equal(take(c, 3), values("o", 10)[7:])
    c.close()


def idempotent():
    name = create(topic("idempotent"), 2)
    p = producer(enable_idempotence=True)
    send(p, name, values("i", 500), partition=1)
    c = consumer(topic("g"))
    c.assign([TopicPartition(name, 1, 0)])
    equal(take(c, 500), values("i", 500))
    c.close()


def transactions(commit):
    source, target, group = create(topic("source")), create(topic("target"), 2), topic("txn")
    send(producer(), source, values("s", 5))
    reader = consumer(group)
    reader.subscribe([source])
    equal(take(reader, 5), values("s", 5))
    p = producer(transactional_id=topic("id"))
    p.init_transactions(30)
    p.begin_transaction()
    p.produce(target, b"t0", partition=0)
    p.produce(target, b"t1", partition=1)
    p.flush(30)  # an abort drops what the client has not sent
    p.send_offsets_to_transaction([TopicPartition(source, 0, 5)], reader.consumer_group_metadata(), 30)
    p.commit_transaction(30) if commit else p.abort_transaction(30)
    for level, want in (("read_committed", 2 if commit else 0), ("read_uncommitted", 2)):
        c = consumer(topic("g"), isolation_level=level)
        c.assign([TopicPartition(target, 0, 0), TopicPartition(target, 1, 0)])
        equal(sorted(take(c, want, 20) if want else take(c, 1, 2)), [b"t0", b"t1"][:want])
        c.close()
    [tp] = reader.committed([TopicPartition(source, 0)], timeout=20)
    equal(tp.offset, 5 if commit else -1001)
    reader.close()


def fencing():
    name, ident = create(topic("fenced")), topic("fenced")
    old, new = producer(transactional_id=ident), producer(transactional_id=ident)
    old.init_transactions(30)
    old.begin_transaction()
    old.produce(name, b"old")
    new.init_transactions(30)
    try:
        old.commit_transaction(30)
    except KafkaException as e:
        equal(e.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED), True)
    else:
        raise AssertionError("the older producer could commit")
    new.begin_transaction()
    new.produce(name, b"new")
    new.commit_transaction(30)
    c = consumer(topic("g"), isolation_level="read_committed")
    c.assign([TopicPartition(name, 0, 0)])
    equal(take(c, 1), [b"new"])
    c.close()


def topics():
    name = create(topic("admin"), 2)
    res = ConfigResource(ResourceType.TOPIC, name)
    described = settle(admin.describe_topics(TopicCollection([name])))
    equal(len(described[name].partitions), 2)
    res.add_incremental_config(ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET))
    settle(admin.incremental_alter_configs([res]))
    end = time.monotonic() + 20
    while settle(admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)])).popitem()[1]["retention.ms"].value != "12345":
        if time.monotonic() > end:
            raise AssertionError("retention.ms did not change")
    settle(admin.create_partitions([NewPartitions(name, 5)]))
    while len(admin.list_topics(name, 20).topics[name].partitions) != 5:
        if time.monotonic() > end:
            raise AssertionError("no five partitions")
    settle(admin.delete_topics([name]))
    while name in admin.list_topics(timeout=20).topics:
        if time.monotonic() > end:
            raise AssertionError("the topic is still listed")
        time.sleep(0.1)


def records():
    name = create(topic("records"))
    send(producer(), name, values("r", 10))
    settle(admin.delete_records([TopicPartition(name, 0, 4)]))
    tp = TopicPartition(name, 0)
    equal(settle(admin.list_offsets({tp: OffsetSpec.earliest()}))[tp].offset, 4)
    equal(settle(admin.list_offsets({tp: OffsetSpec.latest()}))[tp].offset, 10)


def groups():
    name, group = create(topic("groups")), topic("groups")
    send(producer(), name, values("g", 3))
    c = consumer(group)
    c.subscribe([name])
    take(c, 3)
    c.commit(asynchronous=False)
    equal(group in [g.group_id for g in admin.list_consumer_groups().result(20).valid], True)
    described = settle(admin.describe_consumer_groups([group]))[group]
    equal((described.state.name, len(described.members)), ("STABLE", 1))
    c.close()
    settle(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(name, 0, 1)])]))
    got = settle(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))[group]
    equal([t.offset for t in got.topic_partitions], [1])
    settle(admin.delete_consumer_groups([group]))
    equal(group in [g.group_id for g in admin.list_consumer_groups().result(20).valid], False)


def cluster():
    got = admin.describe_cluster().result(20)
    equal((len(got.nodes), got.controller is not None, bool(got.cluster_id)), (1, True, True))


CHECKS = [(f"produce and consume, {codec}", lambda codec=codec: compression(codec)) for codec in ("none", "gzip", "snappy", "lz4", "zstd")]
CHECKS += [
    ("consume by timestamp", by_timestamp),
    ("group with rebalance, eager", lambda: rebalance("classic")),
    ("group with rebalance, cooperative", lambda: rebalance("classic", **{"partition.assignment.strategy": "cooperative-sticky"})),
    ("group with rebalance, group.protocol=consumer", lambda: rebalance("consumer")),
    ("commit and fetch offsets", offsets),
    ("idempotent producer", idempotent),
    ("transaction committed", lambda: transactions(True)),
    ("transaction aborted", lambda: transactions(False)),
    ("transactional id fenced", fencing),
    ("admin: topics", topics),
    ("admin: records and offsets", records),
    ("admin: groups", groups),
    ("admin: cluster", cluster),
]

for name, run in CHECKS:
    try:
        run()
        report(name)
    except Exception as e:
        report(name, e)
print("done")
