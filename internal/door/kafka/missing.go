package kafka

// missing is what Kafka 4.x serves and this door knowingly does not, with what a client gets instead: the key is not announced, and a request for it
// ends the connection, as Kafka does with a key it does not know. A test sees that nothing is both here and served.
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
	76: "ShareGroupHeartbeat: queues come later",
	77: "ShareGroupDescribe: queues",
	78: "ShareFetch: queues",
	79: "ShareAcknowledge: queues",
}
