"""aiokafka against the broker at $BOOTSTRAP."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import OffsetAndMetadata

from checks import BOOTSTRAP, HOUR_AGO, absent, equal, report, topic


class Admin:
    async def __aenter__(self):
        self.client = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        await self.client.start()
        return self.client

    async def __aexit__(self, *_):
        await self.client.close()


async def create(name, partitions=1):
    async with Admin() as a:
        await a.create_topics([NewTopic(name, partitions, 1)])
    return name


async def send(name, values, partition=0, stamps=None, **conf):
    # With acks=1, its default, a record may be acknowledged before it can be read.
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, acks="all", **conf) as p:
        for f in [await p.send(name, v, partition=partition, timestamp_ms=stamps[i] if stamps else None) for i, v in enumerate(values)]:
            await f


def reader(*topics, group=None, **conf):
    return AIOKafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, group_id=group, auto_offset_reset="earliest",
                            enable_auto_commit=False, metadata_max_age_ms=1000, **conf)


async def take(c, n, seconds=30):
    out = []
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while len(out) < n and loop.time() < end:
        for batch in (await c.getmany(timeout_ms=300)).values():
            out += [r.value for r in batch]
    for batch in (await c.getmany(timeout_ms=500)).values():
        out += [r.value for r in batch]
    return out


def values(prefix, n):
    return [f"{prefix}{i}".encode() for i in range(n)]


async def assigned(name, n, partitions=(0,), seconds=30, **conf):
    async with reader(**conf) as c:
        tps = [TopicPartition(name, p) for p in partitions]
        c.assign(tps)
        await c.seek_to_beginning(*tps)
        return await take(c, n, seconds)


async def compression(codec):
    name = await create(topic("compress-" + codec))
    want = [v * 50 for v in values("v", 200)]
    await send(name, want, compression_type=None if codec == "none" else codec, linger_ms=20)
    equal(await assigned(name, 200), want)


async def by_timestamp():
    name = await create(topic("time"))
    await send(name, values("", 10), stamps=[HOUR_AGO + i * 1000 for i in range(10)])
    tp = TopicPartition(name, 0)
    async with reader() as c:
        c.assign([tp])
        found = await c.offsets_for_times({tp: HOUR_AGO + 4500})
        equal(found[tp].offset, 5)
        c.seek(tp, 5)
        equal(await take(c, 5), values("", 10)[5:])
        equal(await c.beginning_offsets([tp]), {tp: 0})
        equal(await c.end_offsets([tp]), {tp: 10})


async def rebalance():
    name, group = await create(topic("balance"), 4), topic("balance")

    async def wait(members, want):
        loop = asyncio.get_running_loop()
        end = loop.time() + 60
        while loop.time() < end:
            for c in members:
                await c.getmany(timeout_ms=100)
            parts = [c.assignment() for c in members]
            if sorted(map(len, parts)) == want and len(set().union(*parts)) == 4:
                return
        raise AssertionError(f"assignments {parts}, wanted sizes {want}")

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, _):
            pass

        def on_partitions_assigned(self, _):
            pass

    a, b = reader(group=group), reader(group=group)
    a.subscribe([name], listener=Listener())
    b.subscribe([name], listener=Listener())
    await a.start()
    await wait([a], [4])
    await b.start()
    await wait([a, b], [2, 2])
    await a.stop()
    await wait([b], [4])
    await b.stop()


async def offsets():
    name, group = await create(topic("offsets")), topic("offsets")
    await send(name, values("o", 10))
    tp = TopicPartition(name, 0)
    async with reader(name, group=group) as c:
        equal(await take(c, 10), values("o", 10))
        await c.commit({tp: OffsetAndMetadata(7, "here")})
        equal(await c.committed(tp), 7)
    async with reader(name, group=group) as c:
        equal(await take(c, 3), values("o", 10)[7:])


async def idempotent():
    name = await create(topic("idempotent"), 2)
    await send(name, values("i", 500), partition=1, enable_idempotence=True)
    equal(await assigned(name, 500, partitions=(1,)), values("i", 500))


async def transactions(commit):
    source, target, group = await create(topic("source")), await create(topic("target"), 2), topic("txn")
    await send(source, values("s", 5))
    tp = TopicPartition(source, 0)
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=topic("id")) as p:
        await p.begin_transaction()
        for part in range(2):
            await (await p.send(target, b"t%d" % part, partition=part))
        await p.send_offsets_to_transaction({tp: OffsetAndMetadata(5, "")}, group)
        await (p.commit_transaction() if commit else p.abort_transaction())
    want = [b"t0", b"t1"] if commit else []
    equal(sorted(await assigned(target, len(want) or 1, (0, 1), 20 if commit else 2, isolation_level="read_committed")), want)
    equal(sorted(await assigned(target, 2, (0, 1))), [b"t0", b"t1"])
    async with reader(source, group=group) as c:
        equal(await c.committed(tp), 5 if commit else None)


async def until(ask, want, seconds=20):
    """A change may take a moment to be seen: Apache Kafka's broker learns it from its controller."""
    end = asyncio.get_running_loop().time() + seconds
    while (got := await ask()) != want:
        if asyncio.get_running_loop().time() > end:
            equal(got, want)
        await asyncio.sleep(0.1)


async def retention(a, name):
    entries = (await a.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)]))[0].resources[0][4]
    return next(e[1] for e in entries if e[0] == "retention.ms")


async def partitions(a, name):
    return len((await a.describe_topics([name]))[0]["partitions"])


async def listed(a, name):
    return name in await a.list_topics()


async def topics():
    name = await create(topic("admin"), 2)
    async with Admin() as a:
        [d] = await a.describe_topics([name])
        equal(len(d["partitions"]), 2)
        await a.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "12345"})])
        await until(lambda: retention(a, name), "12345")
        await a.create_partitions({name: NewPartitions(5)})
        await until(lambda: partitions(a, name), 5)
        await a.delete_topics([name])
        await until(lambda: listed(a, name), False)


async def records():
    name = await create(topic("records"))
    await send(name, values("r", 10))
    tp = TopicPartition(name, 0)
    async with Admin() as a:
        await a.delete_records({tp: RecordsToDelete(before_offset=4)})
    equal(await assigned(name, 6), values("r", 10)[4:])


async def groups():
    name, group = await create(topic("groups")), topic("groups")
    await send(name, values("g", 3))
    async with Admin() as a:
        async with reader(name, group=group) as c:
            await take(c, 3)
            await c.commit()
            equal(group in [g[0] for g in await a.list_consumer_groups()], True)
            state, name_of = (await a.describe_consumer_groups([group]))[0].groups[0][2:0:-1]
            equal((name_of, state), (group, "Stable"))
        equal((await a.list_consumer_group_offsets(group))[TopicPartition(name, 0)].offset, 3)


async def cluster():
    async with Admin() as a:
        equal(len((await a.describe_cluster())["brokers"]), 1)


CHECKS = [(f"produce and consume, {codec}", lambda codec=codec: compression(codec)) for codec in ("none", "gzip", "snappy", "lz4", "zstd")]
CHECKS += [
    ("consume by timestamp", by_timestamp),
    ("group with rebalance", rebalance),
    ("commit and fetch offsets", offsets),
    ("idempotent producer", idempotent),
    ("transaction committed", lambda: transactions(True)),
    ("transaction aborted", lambda: transactions(False)),
    ("admin: topics", topics),
    ("admin: records", records),
    ("admin: groups", groups),
    ("admin: cluster", cluster),
]


async def main():
    for name, run in CHECKS:
        try:
            await asyncio.wait_for(run(), 90)
            report(name)
        except Exception as e:
            report(name, e)
    absent("group.protocol=consumer", "aiokafka has the classic protocol alone")
    print("done")


asyncio.run(main())
