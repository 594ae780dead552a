package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
)

// The schemas that are always there. What lies in the last two is the doors' matter; nobody may create anything in them.
const (
	PublicSchema      = "public"
	PgCatalogSchema   = "pg_catalog"
	InformationSchema = "information_schema"
)

type name struct{ schema, name string }

// Snapshot is the catalog at one instant.
type Snapshot struct {
	byID   map[uint64]*Relation
	byName map[name]*Relation
	ids    IDs
}

// Change is one entry of the metadata to be set, or to be deleted when Value is nil.
type Change struct {
	Key   string
	Value []byte
}

// Empty is the catalog of a new node.
func Empty() *Snapshot {
	return &Snapshot{byID: map[uint64]*Relation{}, byName: map[name]*Relation{}, ids: IDs{Relation: FirstRelation, Table: FirstTable}}
}

// IDs returns a copy of the counters.
func (s *Snapshot) IDs() IDs { return s.ids }

// Relation returns a relation by its id, nil if there is none.
func (s *Snapshot) Relation(id uint64) *Relation {
	if r := s.byID[id]; r != nil || id >= FirstRelation {
		return r
	}
	return systemView(func(r *Relation) bool { return r.ID == id })
}

// Lookup returns a relation by name; an empty schema means the search path, which is public. nil if there is none.
func (s *Snapshot) Lookup(schema, relation string) *Relation {
	if schema == "" {
		schema = PublicSchema
	}
	if r := s.byName[name{schema, relation}]; r != nil {
		return r
	}
	return systemView(func(r *Relation) bool { return r.Schema == schema && r.Name == relation })
}

// HasSchema tells whether relations can be created in a schema of that name.
func (s *Snapshot) HasSchema(schema string) bool { return schema == "" || schema == PublicSchema }

// Relations returns all relations by id, that is in the order in which they were created.
func (s *Snapshot) Relations() []*Relation {
	out := make([]*Relation, 0, len(s.byID))
	for _, r := range s.byID {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Relation) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Dependents returns the relations that read the one with this id directly, by id.
func (s *Snapshot) Dependents(id uint64) []*Relation {
	var out []*Relation
	for _, r := range s.Relations() {
		if slices.Contains(r.DependsOn, id) {
			out = append(out, r)
		}
	}
	return out
}

// Create adds a relation whose ids came from ids, a copy of this snapshot's counters.
func (s *Snapshot) Create(r *Relation, ids IDs) (*Snapshot, []Change, error) {
	if s.byName[name{r.Schema, r.Name}] != nil {
		return nil, nil, &pgerr.Error{Code: "42P07", Message: "relation \"" + r.Name + "\" already exists"}
	}
	if s.byID[r.ID] != nil {
		return nil, nil, &pgerr.Error{Code: "XX000", Message: "the id of relation \"" + r.Name + "\" is in use: the catalog changed while it was created"}
	}
	for _, id := range r.DependsOn {
		if s.byID[id] == nil {
			return nil, nil, &pgerr.Error{Code: "42P01", Message: "a relation that \"" + r.Name + "\" reads was dropped while it was created"}
		}
	}
	value, err := Encode(r)
	if err != nil {
		return nil, nil, err
	}
	n := s.clone()
	n.byID[r.ID] = r
	n.byName[name{r.Schema, r.Name}] = r
	n.ids = n.ids.max(ids).max(r.used())
	return n, []Change{{Key: Key(r.ID), Value: value}, {Key: counterKey, Value: n.ids.encode()}}, nil
}

// Drop removes relations. Without cascade, relations outside the list that depend on them are an error of SQLSTATE 2BP01
// that lists them; with it they are dropped too. It returns what was dropped, dependents before what they read.
func (s *Snapshot) Drop(ids []uint64, cascade bool) (*Snapshot, []*Relation, []Change, error) {
	drop := map[uint64]bool{}
	for _, id := range ids {
		drop[id] = true
	}
	all := s.Relations()
	var blocking []string
	// A relation has a higher id than what it reads, so one pass in order of ids finds dependents of dependents.
	for _, r := range all {
		if drop[r.ID] {
			continue
		}
		for _, id := range r.DependsOn {
			if !drop[id] {
				continue
			}
			on := s.byID[id]
			blocking = append(blocking, string(r.Kind)+" "+r.QualifiedName()+" depends on "+string(on.Kind)+" "+on.QualifiedName())
			drop[r.ID] = true
		}
	}
	if len(blocking) > 0 && !cascade {
		first := s.byID[ids[0]]
		what := string(first.Kind) + " " + first.QualifiedName()
		if len(ids) > 1 {
			what = "the relations"
		}
		return nil, nil, nil, &pgerr.Error{
			Code:    "2BP01",
			Message: "cannot drop " + what + " because other objects depend on it",
			Detail:  strings.Join(blocking, "\n"),
			Hint:    "Use DROP ... CASCADE to drop the dependent objects too.",
		}
	}
	n := s.clone()
	var dropped []*Relation
	var changes []Change
	for _, r := range slices.Backward(all) {
		if !drop[r.ID] {
			continue
		}
		dropped = append(dropped, r)
		changes = append(changes, Change{Key: Key(r.ID)})
		delete(n.byID, r.ID)
		delete(n.byName, name{r.Schema, r.Name})
	}
	return n, dropped, changes, nil
}

func (s *Snapshot) clone() *Snapshot {
	return &Snapshot{byID: maps.Clone(s.byID), byName: maps.Clone(s.byName), ids: s.ids}
}
