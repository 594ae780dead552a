package state

import (
	"fmt"
	"testing"
)

// TestPreload: after a restart tables are read ahead in small steps, but for what is not the worker's, and then answer without the database.
func TestPreload(t *testing.T) {
	t.Parallel()
	db, a := testDB(t)
	key := func(i int) []byte { return fmt.Appendf(nil, "key %05d", i) }
	const n = 3000
	fill := NewTables(Options{DB: db, Applier: a})
	rows, groups := fill.Point(Spec{ID: 1, Name: "rows", Fresh: true}), fill.Ordered(Spec{ID: 2, Name: "groups", Fresh: true})
	for i := range n {
		r, err := rows.ProbeOne(key(i))
		if err != nil {
			t.Fatal(err)
		}
		rows.Set(r, key(i))
		g, err := groups.ProbeOne(key(i / 10))
		if err != nil {
			t.Fatal(err)
		}
		if err := groups.Set(g, key(i), key(i)); err != nil {
			t.Fatal(err)
		}
	}
	commitState(t, fill, a, 5)
	if err := a.ApplyState(5); err != nil {
		t.Fatal(err)
	}
	fill.Close()

	open := func(limit int64) (*Tables, *Point, *Ordered) {
		tables := NewTables(Options{DB: db, Applier: a, Limit: limit})
		mine := func(key []byte) bool { return key[len(key)-1]%2 == 0 }
		return tables, tables.Point(Spec{ID: 1, Name: "rows", Mine: mine}), tables.Ordered(Spec{ID: 2, Name: "groups", Mine: mine})
	}
	tables, rows, groups := open(0)
	r, err := rows.ProbeOne(key(2998)) // changed before it is read ahead
	if err != nil {
		t.Fatal(err)
	}
	rows.Set(r, []byte("new"))
	if r, err = rows.ProbeOne(key(1000)); err != nil {
		t.Fatal(err)
	}
	rows.Delete(r)
	commitState(t, tables, a, 6)
	steps := 0
	for more := true; more; steps++ {
		if more, err = tables.Preload(100); err != nil {
			t.Fatal(err)
		}
	}
	if steps < 60 {
		t.Errorf("it took %d steps", steps)
	}
	loads := tables.Loads()
	for i := 0; i < n; i += 2 {
		want := string(key(i))
		switch i {
		case 2998:
			want = "new"
		case 1000:
			want = ""
		}
		if r, err = rows.ProbeOne(key(i)); err != nil || string(rows.Value(r)) != want {
			t.Fatalf("row %d is %q, %v", i, rows.Value(r), err)
		}
	}
	if r, err = rows.ProbeOne([]byte("absent0")); err != nil || rows.Value(r) != nil {
		t.Errorf("a row that is not there: %q, %v", rows.Value(r), err)
	}
	for i := 0; i < n/10; i += 2 {
		g, err := groups.ProbeOne(key(i))
		if err != nil {
			t.Fatal(err)
		}
		var it OrderedIter
		if err := groups.Scan(&it, g, nil, nil, false); err != nil {
			t.Fatal(err)
		}
		for k := range 10 {
			if !it.Next() || string(it.Suffix()) != string(key(10*i+k)) {
				t.Fatalf("row %d of group %d is %q", k, i, it.Suffix())
			}
		}
		if it.Next() {
			t.Errorf("group %d has a row too many", i)
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if tables.Loads() != loads {
		t.Errorf("%d rows were read from the database", tables.Loads()-loads)
	}
	tables.Close()

	tables, _, _ = open(64 << 10) // too little for all
	for more := true; more; {
		if more, err = tables.Preload(100); err != nil {
			t.Fatal(err)
		}
	}
	if used := tables.Used(); used > 80<<10 || used < 32<<10 {
		t.Errorf("%d bytes are used of %d", used, 64<<10)
	}
	tables.Close()
}
