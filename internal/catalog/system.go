package catalog

import "github.com/leat-io/leat/internal/column"

// SystemView is a relation that every node has and nobody can create: its rows are what the node says of itself when it is read. Only ad hoc
// queries read one.
const SystemView Kind = "system view"

// JobsView is what runs, with what it has counted.
const JobsView = "leat_jobs"

// MemoryView is the tree of memory budgets.
const MemoryView = "leat_memory"

// systemViews are the built-in relations. Their ids are below FirstRelation.
var systemViews = []*Relation{{
	ID: 1, Schema: PublicSchema, Name: JobsView, Kind: SystemView, PrimaryKey: []int{0},
	Columns: []Column{
		{Name: "id", Type: column.TInt64, NotNull: true},
		{Name: "name", Type: column.TText, NotNull: true},
		{Name: "kind", Type: column.TText, NotNull: true},
		{Name: "island", Type: column.TInt64, NotNull: true},
		{Name: "state", Type: column.TText, NotNull: true},
		{Name: "watermark", Type: column.TTimestamptz},
		{Name: "rows_in", Type: column.TInt64, NotNull: true},
		{Name: "rows_late", Type: column.TInt64, NotNull: true},
		{Name: "rows_failed", Type: column.TInt64, NotNull: true},
		{Name: "rows_unmatched", Type: column.TInt64, NotNull: true},
		{Name: "records_dead", Type: column.TInt64, NotNull: true},
		{Name: "held_by", Type: column.TText},
		{Name: "outside_lag", Type: column.TInt64},
		{Name: "outside_problem", Type: column.TText},
	},
}, {
	ID: 2, Schema: PublicSchema, Name: MemoryView, Kind: SystemView, PrimaryKey: []int{0},
	Columns: []Column{
		{Name: "pool", Type: column.TText, NotNull: true},
		{Name: "depth", Type: column.TInt32, NotNull: true},
		{Name: "bytes", Type: column.TInt64, NotNull: true},
		{Name: "peak_bytes", Type: column.TInt64, NotNull: true},
		{Name: "limit_bytes", Type: column.TInt64},
	},
}}

// SystemColumns are the names of a system view's columns.
func SystemColumns(view string) (names []string) {
	if r := systemView(func(r *Relation) bool { return r.Name == view }); r != nil {
		for _, c := range r.Columns {
			names = append(names, c.Name)
		}
	}
	return names
}

func systemView(match func(*Relation) bool) *Relation {
	for _, r := range systemViews {
		if match(r) {
			return r
		}
	}
	return nil
}
