package kafka

// feature is something that clients switch on, by its level (KIP-584).
type feature struct {
	name            string
	min, max, level int16
}

// features are those that are announced, with the level that is in force, which only another version of Leat changes. metadata.version stands for what
// brokers of Kafka 4.4 write, which tools take for the cluster's version.
var features = []feature{
	{"group.version", 0, 1, 1},
	{"metadata.version", 7, 33, 33},
	{"transaction.version", 0, 2, 2},
}

func featureNamed(name string) (feature, bool) {
	for _, f := range features {
		if f.name == name {
			return f, true
		}
	}
	return feature{}, false
}
