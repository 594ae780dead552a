package catalog

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// table is a relation with one of everything.
func table(ids *IDs, name string, on ...uint64) *Relation {
	id, tableID := ids.NextRelation(), ids.NextTable()
	col := expr.Column(0, column.TInt64, 0)
	return &Relation{
		ID: id, Schema: PublicSchema, Name: name, Kind: Table, Topic: name, Partitions: 1, Format: "upsert", Encode: "json",
		Columns: []Column{
			{Name: "id", Type: column.TInt64, NotNull: true},
			{Name: "v", Type: column.TText, Default: expr.Const(column.TText, "x", 0)},
			{Name: "g", Type: column.TInt64, Generated: col},
		},
		PrimaryKey: []int{0}, Checks: []Check{{Name: "c", Expr: &expr.Node{Op: expr.OpIsNull, Type: column.TBool, Args: []*expr.Node{col}}}},
		OnConflict: ConflictOverwrite, Options: map[string]string{"topic": name}, Definition: "CREATE TABLE ...", DependsOn: on,
		Plan: &plan.Plan{Version: plan.Version, Nodes: []*plan.Node{
			{Kind: plan.KindValues, Columns: []plan.Column{}, Key: []int{}, EventTime: -1, RowWatermark: -1, Values: &plan.Values{Rows: [][]*expr.Node{{}}}},
			{
				Kind: plan.KindMaterialize, Inputs: []int{0}, Columns: []plan.Column{}, Key: []int{}, EventTime: -1, RowWatermark: -1,
				Materialize: &plan.Materialize{Relation: id}, Tables: []plan.Table{{ID: tableID, Name: "rows", Version: 1}},
			},
		}},
	}
}

// store is a metadata table in memory.
type store map[string][]byte

func (s store) apply(changes []Change) {
	for _, c := range changes {
		if c.Value == nil {
			delete(s, c.Key)
		} else {
			s[c.Key] = c.Value
		}
	}
}

func (s store) scan(prefix string, fn func(string, []byte) error) error {
	for k, v := range s {
		if strings.HasPrefix(k, prefix) {
			if err := fn(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func create(t *testing.T, s *Snapshot, db store, name string, on ...uint64) (*Snapshot, *Relation) {
	t.Helper()
	ids := s.IDs()
	r := table(&ids, name, on...)
	next, changes, err := s.Create(r, ids)
	if err != nil {
		t.Fatal(err)
	}
	db.apply(changes)
	return next, r
}

func TestRelationsComeBack(t *testing.T) {
	t.Parallel()
	s, db := Empty(), store{}
	s, a := create(t, s, db, "a")
	s, _ = create(t, s, db, "b", a.ID)
	loaded, err := Load(db.scan)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Relations(), loaded.Relations(), cmpopts.IgnoreUnexported(Relation{})); diff != "" {
		t.Error(diff)
	}
	if s.IDs() != loaded.IDs() {
		t.Errorf("counters: %v, then %v", s.IDs(), loaded.IDs())
	}
}

func TestIDsAreNeverUsedAgain(t *testing.T) {
	t.Parallel()
	s, db := Empty(), store{}
	s, a := create(t, s, db, "a")
	if a.ID != FirstRelation || a.Plan.Nodes[1].Tables[0].ID != FirstTable {
		t.Errorf("the first ids are %d and %d", a.ID, a.Plan.Nodes[1].Tables[0].ID)
	}
	s, _, changes, err := s.Drop([]uint64{a.ID}, false)
	if err != nil {
		t.Fatal(err)
	}
	db.apply(changes)
	if s.Relation(a.ID) != nil || s.Lookup("", "a") != nil {
		t.Error("a dropped relation is still there")
	}
	loaded, err := Load(db.scan)
	if err != nil {
		t.Fatal(err)
	}
	_, b := create(t, loaded, db, "a")
	if b.ID == a.ID || b.Plan.Nodes[1].Tables[0].ID == a.Plan.Nodes[1].Tables[0].ID {
		t.Errorf("relation id %d or table id %d is used twice", b.ID, b.Plan.Nodes[1].Tables[0].ID)
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	t.Parallel()
	s0 := Empty()
	s1, a := create(t, s0, store{}, "a")
	s2, _, _, err := s1.Drop([]uint64{a.ID}, false)
	if err != nil {
		t.Fatal(err)
	}
	if s0.Lookup("public", "a") != nil || s1.Lookup("public", "a") != a || s2.Lookup("public", "a") != nil {
		t.Error("a change is seen in a snapshot before or after it")
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	s, _ := create(t, Empty(), store{}, "a")
	ids := s.IDs()
	_, _, err := s.Create(table(&ids, "a"), ids)
	if pgerr.Code(err) != pgerr.DuplicateTable {
		t.Errorf("got %v", err)
	}
}

func TestDropRespectsDependents(t *testing.T) {
	t.Parallel()
	s, db := Empty(), store{}
	s, a := create(t, s, db, "a")
	s, b := create(t, s, db, "b", a.ID)
	s, c := create(t, s, db, "c", b.ID)
	_, _, _, err := s.Drop([]uint64{a.ID}, false)
	var e *pgerr.Error
	if !errors.As(err, &e) || e.Code != pgerr.DependentObjectsStillExist {
		t.Fatalf("got %v", err)
	}
	if want := "table b depends on table a\ntable c depends on table b"; e.Detail != want {
		t.Errorf("detail %q, want %q", e.Detail, want)
	}
	if _, _, _, err := s.Drop([]uint64{a.ID, b.ID, c.ID}, false); err != nil {
		t.Errorf("all together: %v", err)
	}
	next, dropped, changes, err := s.Drop([]uint64{a.ID}, true)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range dropped {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"c", "b", "a"}) || len(changes) != 3 || len(next.Relations()) != 0 {
		t.Errorf("dropped %v with %d changes, %d are left", names, len(changes), len(next.Relations()))
	}
}

func TestUnknownPlanVersionStopsOnlyTheJob(t *testing.T) {
	t.Parallel()
	_, a := create(t, Empty(), store{}, "a")
	a.Plan.Version = 77
	raw, err := Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if r.Plan != nil || r.PlanError == nil || !strings.Contains(r.PlanError.Error(), "table a") || !strings.Contains(r.PlanError.Error(), "77") {
		t.Errorf("plan %v, error %v", r.Plan, r.PlanError)
	}
	again, err := Encode(r)
	if err != nil || string(again) != string(raw) {
		t.Errorf("the stored plan is not kept: %v\n%s\n%s", err, raw, again)
	}
}

func TestUnknownRelationVersionIsRefused(t *testing.T) {
	t.Parallel()
	_, a := create(t, Empty(), store{}, "a")
	raw, err := Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	m["version"] = 2
	raw, _ = json.Marshal(m)
	if _, err := Decode(raw); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("got %v", err)
	}
}

func TestLoadRefusesWhatDoesNotFitTogether(t *testing.T) {
	t.Parallel()
	s, db := Empty(), store{}
	s, a := create(t, s, db, "a")
	_, b := create(t, s, db, "b", a.ID)
	tests := map[string]func(store){
		"missing dependency": func(d store) { delete(d, Key(a.ID)) },
		"wrong key":          func(d store) { d[Key(99)] = d[Key(b.ID)] },
		"not JSON":           func(d store) { d[Key(a.ID)] = []byte("{") },
		"counters":           func(d store) { d[counterKey] = []byte(`{"version":9}`) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := store{}
			for k, v := range db {
				d[k] = v
			}
			damage(d)
			if _, err := Load(d.scan); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

// FuzzDecode: bytes are a relation or an error, and a relation encodes to itself.
func FuzzDecode(f *testing.F) {
	_, a := create(&testing.T{}, Empty(), store{}, "a")
	raw, err := Encode(a)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	for i := 0; i < len(raw); i += len(raw) / 20 { // and damaged ones
		b := slices.Clone(raw)
		b[i] ^= 1
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := Decode(raw)
		if err != nil {
			return
		}
		one, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(one)
		if err != nil {
			t.Fatal(err)
		}
		two, err := Encode(again)
		if err != nil || string(one) != string(two) {
			t.Fatalf("%v\n%s\n%s", err, one, two)
		}
	})
}
