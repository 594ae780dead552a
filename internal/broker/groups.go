package broker

type coordinator struct{ b *Broker }

func newCoordinator(b *Broker) (*coordinator, error) { return &coordinator{b: b}, nil }
func (c *coordinator) expireOffsets()                {}
func (c *coordinator) topicDeleted(string)           {}
func (c *coordinator) close()                        {}
