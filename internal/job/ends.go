package job

import (
	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/connector"
)

// Ends returns where each of the sources can be read to, taken at one instant: nothing that is atomic, nor a Kafka transaction, is seen in part across
// them.
func Ends(b *broker.Broker, sources []connector.Source) [][]int64 {
	out := make([][]int64, len(sources))
	var parts []*broker.Partition
	at := map[*broker.Partition]int{}
	for _, s := range sources {
		if log, ok := s.(LogSource); ok {
			for _, p := range log.LogPartitions() {
				if _, seen := at[p]; !seen {
					at[p] = len(parts)
					parts = append(parts, p)
				}
			}
		}
	}
	cut := b.Cut(parts, nil)
	for i, s := range sources {
		log, ok := s.(LogSource)
		if !ok {
			out[i] = s.Ends(nil)
			continue
		}
		for _, p := range log.LogPartitions() {
			k, ok := at[p]
			if !ok {
				break // it was made meanwhile
			}
			out[i] = append(out[i], cut[k])
		}
	}
	return out
}

// readerEnds are where the sources of the island's readers can be read to, in the order of the readers; mu is held.
func (x *island) readerEnds() [][]int64 {
	readers := x.flow.Readers()
	sources := make([]connector.Source, len(readers))
	for i := range readers {
		sources[i] = readers[i].Source
	}
	return Ends(x.m.o.Broker, sources)
}
