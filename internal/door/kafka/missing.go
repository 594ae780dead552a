package kafka

// missing is what Kafka 4.x serves clients and this door knowingly does not, with the reason: the key is not announced, and a request for it
// ends the connection, as Kafka does with a key it does not know. What brokers only ask each other (4 to 7, 52 to 54, 56, 58, 59, 62, 63, 67, 70, 73, 82 to
// 87) has no place here. A test sees that nothing is both here and served.
var missing = map[int16]string{
	17: "SASLHandshake: authentication comes later",
	29: "DescribeACLs: authorisation comes later",
	30: "CreateACLs: authorisation",
	31: "DeleteACLs: authorisation",
	36: "SASLAuthenticate: authentication",
	38: "CreateDelegationToken: authentication",
	39: "RenewDelegationToken: authentication",
	40: "ExpireDelegationToken: authentication",
	41: "DescribeDelegationToken: authentication",
	48: "DescribeClientQuotas",
	49: "AlterClientQuotas",
	50: "DescribeUserSCRAMCredentials: authentication",
	51: "AlterUserSCRAMCredentials: authentication",
	64: "UnregisterBroker: there is one",
	80: "AddRaftVoter: the quorum is one node",
	81: "RemoveRaftVoter: the quorum is one node",
	88: "StreamsGroupHeartbeat: Kafka Streams runs in consumer groups",
	89: "StreamsGroupDescribe: streams groups",
	90: "DescribeShareGroupOffsets: queues",
	91: "AlterShareGroupOffsets: queues",
	92: "DeleteShareGroupOffsets: queues",
	93: "StreamsGroupTopologyDescriptionUpdate: streams groups",
	94: "UnregisterController: there is one",
	76: "ShareGroupHeartbeat: queues come later",
	77: "ShareGroupDescribe: queues",
	78: "ShareFetch: queues",
	79: "ShareAcknowledge: queues",
}
