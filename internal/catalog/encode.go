package catalog

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/sql/plan"
)

// FormatVersion is the version of the JSON form of a relation.
const FormatVersion = 1

// KeyPrefix begins the metadata keys of the catalog.
const KeyPrefix = "catalog/"

const counterKey = KeyPrefix + "next"

// Key is the metadata key of a relation.
func Key(id uint64) string { return KeyPrefix + strconv.FormatUint(id, 10) }

type storedRelation struct {
	Version int             `json:"version"`
	Plan    json.RawMessage `json:"plan,omitempty"`
	*Relation
}

// Encode returns the stored form of a relation.
func Encode(r *Relation) ([]byte, error) {
	s := storedRelation{Version: FormatVersion, Relation: r, Plan: r.rawPlan}
	if r.Plan != nil {
		raw, err := json.Marshal(r.Plan)
		if err != nil {
			return nil, fmt.Errorf("encode the plan of %s: %w", r.QualifiedName(), err)
		}
		s.Plan = raw
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.QualifiedName(), err)
	}
	return b, nil
}

// Decode reads what Encode wrote. A plan of a version that this binary does not know is not an error: the relation is
// there, its PlanError says why its job cannot run, and the stored bytes are kept.
func Decode(b []byte) (*Relation, error) {
	s := storedRelation{Relation: &Relation{}}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("decode a relation of the catalog: %w", err)
	}
	r := s.Relation
	if s.Version != FormatVersion {
		return nil, fmt.Errorf("relation %q of the catalog has format version %d; this binary knows %d", r.Name, s.Version, FormatVersion)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(s.Plan) == 0 {
		return r, nil
	}
	p, err := plan.Decode(s.Plan)
	if err != nil {
		r.rawPlan = s.Plan
		r.PlanError = fmt.Errorf("%s %s: %w", r.Kind, r.QualifiedName(), err)
		return r, nil
	}
	r.Plan = p
	return r, nil
}

// check refuses a stored relation whose numbers would send a reader out of bounds.
func (r *Relation) check() error {
	if r.Name == "" || r.Schema == "" {
		return fmt.Errorf("relation %d of the catalog has no name", r.ID)
	}
	switch r.Kind {
	case Source, Table, View, MaterializedView, Sink:
	default:
		return fmt.Errorf("relation %q of the catalog has the unknown kind %q", r.Name, r.Kind)
	}
	for _, k := range r.PrimaryKey {
		if k < 0 || k >= len(r.Columns) {
			return fmt.Errorf("relation %q of the catalog has a key column %d but %d columns", r.Name, k, len(r.Columns))
		}
	}
	if w := r.Watermark; w != nil && (w.Column < 0 || w.Column >= len(r.Columns)) {
		return fmt.Errorf("relation %q of the catalog has a watermark on column %d but %d columns", r.Name, w.Column, len(r.Columns))
	}
	return nil
}

type storedCounters struct {
	Version  int    `json:"version"`
	Relation uint64 `json:"relation"`
	Table    uint32 `json:"table"`
}

// Loader builds a Snapshot from the entries of the metadata whose keys begin with KeyPrefix, in any order.
type Loader struct {
	relations []*Relation
	ids       IDs
}

// Add takes one entry.
func (l *Loader) Add(key string, value []byte) error {
	if key == counterKey {
		var c storedCounters
		if err := json.Unmarshal(value, &c); err != nil {
			return fmt.Errorf("decode %s: %w", key, err)
		}
		if c.Version != FormatVersion {
			return fmt.Errorf("%s has format version %d; this binary knows %d", key, c.Version, FormatVersion)
		}
		l.ids = IDs{Relation: c.Relation, Table: c.Table}
		return nil
	}
	r, err := Decode(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if strings.TrimPrefix(key, KeyPrefix) != strconv.FormatUint(r.ID, 10) {
		return fmt.Errorf("%s holds the relation with id %d", key, r.ID)
	}
	l.relations = append(l.relations, r)
	return nil
}

// Snapshot returns what the entries say, after checking that they fit together.
func (l *Loader) Snapshot() (*Snapshot, error) {
	s := Empty()
	s.ids = s.ids.max(l.ids)
	for _, r := range l.relations {
		if s.byID[r.ID] != nil {
			return nil, fmt.Errorf("two relations of the catalog have the id %d", r.ID)
		}
		if other := s.byName[name{r.Schema, r.Name}]; other != nil {
			return nil, fmt.Errorf("two relations of the catalog have the name %q", r.QualifiedName())
		}
		s.byID[r.ID] = r
		s.byName[name{r.Schema, r.Name}] = r
		s.ids = s.ids.max(r.used())
	}
	for _, r := range l.relations {
		for _, id := range r.DependsOn {
			if s.byID[id] == nil {
				return nil, fmt.Errorf("%s %s depends on relation %d, which is not in the catalog", r.Kind, r.QualifiedName(), id)
			}
		}
	}
	return s, nil
}

// Load builds a Snapshot with a function that scans the metadata by prefix, such as kv's ScanMeta.
func Load(scan func(prefix string, fn func(key string, value []byte) error) error) (*Snapshot, error) {
	var l Loader
	if err := scan(KeyPrefix, l.Add); err != nil {
		return nil, fmt.Errorf("load the catalog: %w", err)
	}
	return l.Snapshot()
}
