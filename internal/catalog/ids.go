package catalog

import "encoding/json"

// The first ids that are given out. Lower ones are kept for the node's own tables and for PostgreSQL's system catalog.
const (
	FirstRelation uint64 = 16384
	FirstTable    uint32 = 1000
)

// IDs are the counters that ids come from. It is a plain value: a binder takes a copy, gives ids from it, and the change
// that uses them stores how far it came.
type IDs struct {
	Relation uint64 // the next relation's
	Table    uint32 // the next state table's
}

// NextRelation gives a relation id.
func (i *IDs) NextRelation() uint64 {
	id := i.Relation
	i.Relation++
	return id
}

// NextTable gives a state table id.
func (i *IDs) NextTable() uint32 {
	id := i.Table
	i.Table++
	return id
}

func (i IDs) max(o IDs) IDs {
	return IDs{Relation: max(i.Relation, o.Relation), Table: max(i.Table, o.Table)}
}

func (i IDs) encode() []byte {
	b, err := json.Marshal(storedCounters{Version: FormatVersion, Relation: i.Relation, Table: i.Table})
	if err != nil {
		panic(err) // three integers always encode
	}
	return b
}

// used returns counters that are past every id that the relation holds.
func (r *Relation) used() IDs {
	u := IDs{Relation: r.ID + 1}
	if r.Plan == nil {
		return u
	}
	for _, n := range r.Plan.Nodes {
		for _, t := range n.Tables {
			u.Table = max(u.Table, t.ID+1)
		}
	}
	return u
}
