// @platformatic/kafka against the broker at $BOOTSTRAP.
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import zlib from 'node:zlib'
import { bootstrap, equal, fresh, hourAgo, run, until } from './checks.mjs'

const base = { clientId: 'compat', bootstrapBrokers: [bootstrap], retries: 5, retryDelay: 200, metadataMaxAge: 500 }
const admin = new Admin(base)
const READ_UNCOMMITTED = 0
const READ_COMMITTED = 1
const TOPIC = 2 // as a resource of configurations
const SET = 0 // as an operation on one

const create = async (prefix, partitions = 1) => {
  const topic = fresh(prefix)
  await admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  return topic
}

const values = (prefix, n) => Array.from({ length: n }, (_, i) => `${prefix}${i}`)

const producer = (options = {}) => new Producer({ ...base, serializers: stringSerializers, ...options })

const records = (topic, list) => list.map((m) => ({ topic, partition: 0, ...(typeof m === 'string' ? { value: m } : m) }))

const send = async (topic, list, options = {}) => {
  const p = producer(options)
  await p.send({ messages: records(topic, list), acks: -1 })
  await p.close()
}

// A member of a group: what it owns and what it has read.
const join = async (topic, groupId, options = {}) => {
  const timeouts = options.groupProtocol === 'consumer' ? {} : { sessionTimeout: 6000, heartbeatInterval: 300 }
  const c = new Consumer({ ...base, groupId, deserializers: stringDeserializers, autocommit: false, maxWaitTime: 200, isolationLevel: READ_COMMITTED, ...timeouts, ...options })
  const stream = await c.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
  const m = { read: [], consumer: c, stop: () => c.close(true), get owned () { return (c.assignments ?? []).filter((a) => a.topic === topic).flatMap((a) => a.partitions) } }
  stream.on('data', (message) => m.read.push(message))
  stream.on('error', (error) => console.error(error))
  return m
}

const read = (m) => m.read.map((message) => message.value)

// Wants these values of a topic, and no more.
const expect = async (topic, want, options) => {
  const m = await join(topic, fresh('reader'), options)
  try {
    await until(`no partitions of ${topic}`, () => m.owned.length > 0)
    await until(`read less than ${want.length} records`, () => m.read.length >= want.length)
    await new Promise((done) => setTimeout(done, 1000)) // so that one too many is seen
    equal(read(m).sort(), [...want].sort())
  } finally {
    await m.stop()
  }
}

const compression = async (codec) => {
  const topic = await create('compress')
  const want = values('v', 200).map((v) => v.repeat(20))
  await send(topic, want, { compression: codec })
  await expect(topic, want)
}

const rebalance = async (options) => {
  const [topic, group] = [await create('balance', 4), fresh('balance')]
  const a = await join(topic, group, options)
  await until('the first member did not get all partitions', () => a.owned.length === 4)
  const b = await join(topic, group, options)
  await until('the members did not share the partitions', () => a.owned.length === 2 && b.owned.length === 2)
  await a.stop()
  await until('the second member did not inherit', () => b.owned.length === 4)
  await b.stop()
}

const committed = async (groupId, topic) => {
  const [group] = await admin.listConsumerGroupOffsets({ groups: [{ groupId, topics: [{ name: topic, partitionIndexes: [0] }] }] })
  const of = group.topics.find((t) => t.name === topic)?.partitions[0]
  return of ? String(of.committedOffset) : '-1'
}

const transaction = async (commit) => {
  const [source, target, group] = [await create('source'), await create('target', 2), fresh('txn')]
  await send(source, values('s', 5))
  const m = await join(source, group)
  await until('the input was not read', () => m.read.length === 5)
  const p = producer({ transactionalId: fresh('id'), idempotent: true })
  const t = await p.beginTransaction()
  await t.send({ messages: [{ topic: target, partition: 0, value: 't0' }, { topic: target, partition: 1, value: 't1' }] })
  await t.addConsumer(m.consumer)
  await t.addOffset(m.read[4])
  await (commit ? t.commit() : t.abort())
  await p.close()
  await m.stop()
  await expect(target, commit ? ['t0', 't1'] : [])
  await expect(target, ['t0', 't1'], { isolationLevel: READ_UNCOMMITTED })
  equal(await committed(group, source), commit ? '5' : '-1')
}

const zstd = zlib.zstdCompressSync !== undefined

await run({
  'produce and consume, none': () => compression('none'),
  'produce and consume, gzip': () => compression('gzip'),
  'produce and consume, snappy': () => compression('snappy'),
  'produce and consume, lz4': () => compression('lz4'),
  ...zstd && { 'produce and consume, zstd': () => compression('zstd') },
  'keys and headers': async () => {
    const topic = await create('headers')
    await send(topic, [{ key: 'k', value: 'v', headers: { h: '1' } }])
    const m = await join(topic, fresh('reader'))
    await until('nothing was read', () => m.read.length === 1)
    equal([m.read[0].key, m.read[0].value, [...m.read[0].headers]], ['k', 'v', [['h', '1']]])
    await m.stop()
  },
  'consume by timestamp': async () => {
    const topic = await create('time')
    await send(topic, values('', 10).map((value, i) => ({ value, timestamp: BigInt(hourAgo + i * 1000) })))
    const at = async (timestamp) => String((await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }] }))[0].partitions[0].offset)
    equal([await at(BigInt(hourAgo + 4500)), await at(-2n), await at(-1n)], ['5', '0', '10'])
  },
  'group with rebalance, classic': () => rebalance({}),
  'group with rebalance, group.protocol=consumer': () => rebalance({ groupProtocol: 'consumer' }),
  'commit and fetch offsets': async () => {
    const [topic, group] = [await create('offsets'), fresh('offsets')]
    await send(topic, values('o', 10))
    const a = await join(topic, group)
    await until('the member did not read all', () => a.read.length === 10)
    await a.consumer.commit({ offsets: [{ topic, partition: 0, offset: 7n, leaderEpoch: -1 }] })
    await a.stop()
    equal(await committed(group, topic), '7')
    const b = await join(topic, group)
    await until('the next member read nothing', () => b.read.length === 3)
    equal(read(b), ['o7', 'o8', 'o9'])
    await b.stop()
  },
  'idempotent producer': async () => {
    const topic = await create('idempotent')
    const p = producer({ idempotent: true })
    for (let i = 0; i < 5; i++) await p.send({ messages: records(topic, values(`i${i}-`, 100)) })
    await p.close()
    await expect(topic, Array.from({ length: 5 }, (_, i) => values(`i${i}-`, 100)).flat())
  },
  'transaction committed': () => transaction(true),
  'transaction aborted': () => transaction(false),
  'admin: topics': async () => {
    const topic = await create('admin', 2)
    await admin.incrementalAlterConfigs({ resources: [{ resourceType: TOPIC, resourceName: topic, configs: [{ name: 'retention.ms', configOperation: SET, value: '12345' }] }] })
    await until('retention.ms did not change', async () => {
      const [described] = await admin.describeConfigs({ resources: [{ resourceType: TOPIC, resourceName: topic, configurationKeys: ['retention.ms'] }] })
      return described.configs[0].value === '12345'
    })
    await admin.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
    await until('there are no five partitions', async () => (await admin.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic).partitionsCount === 5)
    await admin.deleteTopics({ topics: [topic] })
    await until('the topic is still listed', async () => !(await admin.listTopics()).includes(topic))
  },
  'admin: records': async () => {
    const topic = await create('records')
    await send(topic, values('r', 10))
    const [deleted] = await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 4n }] }] })
    equal(String(deleted.partitions[0].lowWatermark), '4')
    await expect(topic, values('r', 10).slice(4))
  },
  'admin: groups': async () => {
    const [topic, group] = [await create('groups'), fresh('groups')]
    const m = await join(topic, group)
    await until('no partitions', () => m.owned.length === 1)
    const d = (await admin.describeGroups({ groups: [group] })).get(group)
    equal([d.state, d.members.size], ['STABLE', 1])
    await m.stop()
    equal((await admin.listGroups()).has(group), true)
    await admin.alterConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionOffsets: [{ partition: 0, offset: 3n }] }] })
    equal(await committed(group, topic), '3')
    await admin.deleteConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionIndexes: [0] }] })
    equal(await committed(group, topic), '-1')
    await admin.deleteGroups({ groups: [group] })
  },
  'admin: log directories': async () => {
    const topic = await create('dirs')
    const [of] = await admin.describeLogDirs({ topics: [{ name: topic, partitions: [0] }] })
    equal(of.results.flatMap((r) => r.topics).filter((t) => t.name === topic).length, 1)
  },
  'admin: cluster': async () => equal((await admin.metadata({ topics: [] })).brokers.size, 1)
}, zstd ? {} : { 'produce and consume, zstd': `Node.js ${process.version} has no zstd` })
