// kafkajs against the broker at $BOOTSTRAP.
import kafkajs from 'kafkajs'
import { bootstrap, equal, fresh, hourAgo, run, until } from './checks.mjs'

const { Kafka, CompressionTypes, ConfigResourceTypes, logLevel } = kafkajs
const kafka = new Kafka({ clientId: 'compat', brokers: [bootstrap], logLevel: logLevel.NOTHING })
const admin = kafka.admin()
await admin.connect()

const create = async (prefix, numPartitions = 1) => {
  const topic = fresh(prefix)
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions, replicationFactor: 1 }] })
  return topic
}

const values = (prefix, n) => Array.from({ length: n }, (_, i) => `${prefix}${i}`)

const send = async (topic, messages, { options = {}, compression } = {}) => {
  const p = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner, ...options })
  await p.connect()
  await p.send({ topic, compression, acks: -1, messages: messages.map((m) => (typeof m === 'string' ? { value: m, partition: 0 } : m)) })
  await p.disconnect()
}

// A member of a group: what it owns and what it has read.
const join = async (topic, groupId, options = {}) => {
  const c = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, metadataMaxAge: 1000, maxWaitTimeInMs: 200, ...options })
  const m = { owned: [], read: [], consumer: c, stop: () => c.disconnect() }
  c.on(c.events.GROUP_JOIN, (e) => { m.owned = e.payload.memberAssignment[topic] ?? [] })
  c.on(c.events.REBALANCING, () => { m.owned = [] })
  await c.connect()
  await c.subscribe({ topic, fromBeginning: true })
  await c.run({ autoCommit: false, eachMessage: async ({ message }) => { m.read.push(message.value.toString()) } })
  return m
}

// Wants these values of a topic, and no more.
const expect = async (topic, want, options) => {
  const m = await join(topic, fresh('reader'), options)
  await until(`no partitions of ${topic}`, () => m.owned.length > 0)
  try {
    await until(`read less than ${want.length} records`, () => m.read.length >= want.length)
    await new Promise((done) => setTimeout(done, 1000)) // so that one too many is seen
    equal([...m.read].sort(), [...want].sort())
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

const transaction = async (commit) => {
  const [source, target, group] = [await create('source'), await create('target', 2), fresh('txn')]
  const p = kafka.producer({ transactionalId: fresh('id'), maxInFlightRequests: 1, idempotent: true, createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await p.connect()
  const t = await p.transaction()
  await t.send({ topic: target, messages: [{ value: 't0', partition: 0 }, { value: 't1', partition: 1 }] })
  await t.sendOffsets({ consumerGroupId: group, topics: [{ topic: source, partitions: [{ partition: 0, offset: '5' }] }] })
  await (commit ? t.commit() : t.abort())
  await p.disconnect()
  await expect(target, commit ? ['t0', 't1'] : [])
  await expect(target, ['t0', 't1'], { readUncommitted: true })
  const [of] = await admin.fetchOffsets({ groupId: group, topics: [source] })
  equal(of.partitions[0].offset, commit ? '5' : '-1')
}

await run({
  'produce and consume, none': () => compression(CompressionTypes.None),
  'produce and consume, gzip': () => compression(CompressionTypes.GZIP),
  'consume by timestamp': async () => {
    const topic = await create('time')
    await send(topic, values('', 10).map((value, i) => ({ value, partition: 0, timestamp: String(hourAgo + i * 1000) })))
    const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, hourAgo + 4500)
    equal(found.offset, '5')
    const [all] = await admin.fetchTopicOffsets(topic)
    equal([all.low, all.high], ['0', '10'])
  },
  'group with rebalance': async () => {
    const [topic, group] = [await create('balance', 4), fresh('balance')]
    const a = await join(topic, group)
    await until('the first member did not get all partitions', () => a.owned.length === 4)
    const b = await join(topic, group)
    await until('the members did not share the partitions', () => a.owned.length === 2 && b.owned.length === 2)
    await a.stop()
    await until('the second member did not inherit', () => b.owned.length === 4)
    await b.stop()
  },
  'commit and fetch offsets': async () => {
    const [topic, group] = [await create('offsets'), fresh('offsets')]
    await send(topic, values('o', 10))
    const a = await join(topic, group)
    await until('the member did not read all', () => a.read.length === 10)
    await a.consumer.commitOffsets([{ topic, partition: 0, offset: '7', metadata: 'here' }])
    await a.stop()
    const [of] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    equal([of.partitions[0].offset, of.partitions[0].metadata], ['7', 'here'])
    const b = await join(topic, group)
    await until('the next member read nothing', () => b.read.length === 3)
    equal(b.read, ['o7', 'o8', 'o9'])
    await b.stop()
  },
  'idempotent producer': async () => {
    const topic = await create('idempotent')
    await send(topic, values('i', 500), { options: { idempotent: true, maxInFlightRequests: 1 } })
    await expect(topic, values('i', 500))
  },
  'transaction committed': () => transaction(true),
  'transaction aborted': () => transaction(false),
  'admin: topics': async () => {
    const topic = await create('admin', 2)
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name: 'retention.ms', value: '12345' }] }] })
    await until('retention.ms did not change', async () => {
      const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }] })
      return resources[0].configEntries[0].configValue === '12345'
    })
    await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
    await until('there are no five partitions', async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length === 5)
    await admin.deleteTopics({ topics: [topic] })
    await until('the topic is still listed', async () => !(await admin.listTopics()).includes(topic))
  },
  'admin: records': async () => {
    const topic = await create('records')
    await send(topic, values('r', 10))
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
    await expect(topic, values('r', 10).slice(4))
  },
  'admin: groups': async () => {
    const [topic, group] = [await create('groups'), fresh('groups')]
    const m = await join(topic, group)
    await until('no partitions', () => m.owned.length === 1)
    const { groups: [d] } = await admin.describeGroups([group])
    equal([d.state, d.members.length], ['Stable', 1])
    await m.stop()
    equal((await admin.listGroups()).groups.some((g) => g.groupId === group), true)
    await admin.deleteGroups([group])
  },
  'admin: cluster': async () => equal((await admin.describeCluster()).brokers.length, 1)
}, {
  'produce and consume, snappy, lz4, zstd': 'kafkajs has them in packages of others',
  'group.protocol=consumer': 'kafkajs has the classic protocol alone'
})
