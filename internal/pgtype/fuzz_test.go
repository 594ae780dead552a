package pgtype_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/columntest"
	"github.com/leat-io/leat/internal/pgtype"
)

// TestRandomValuesComeBack writes random values of every type as text and as binary and reads them back.
func TestRandomValuesComeBack(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range columntest.Types() {
		v := column.NewVector(typ, 200)
		for i := range 200 {
			columntest.AppendRandom(r, v, i%4 == 0)
		}
		texts, sent := column.NewVector(typ, 200), column.NewVector(typ, 200)
		for i := range v.Len {
			text := pgtype.AppendText(nil, v, i, zone)
			if typ.Kind == column.Timestamptz && v.I64[i]%1_000_000 == 0 {
				text = pgtype.AppendText(nil, v, i, time.UTC)
			}
			if err := pgtype.ParseText(texts, text, &pgtype.Context{Zone: zone}); err != nil {
				t.Fatalf("%s %q: %v", typ, text, err)
			}
			if !texts.Equal(i, v, i) {
				t.Fatalf("%s %q reads back as %q", typ, text, pgtype.AppendText(nil, texts, i, zone))
			}
			wire := pgtype.AppendBinary(nil, v, i)
			if err := pgtype.ParseBinary(sent, wire); err != nil {
				t.Fatalf("%s %x: %v", typ, wire, err)
			}
			if !sent.Equal(i, v, i) {
				t.Fatalf("%s %x reads back as another value", typ, wire)
			}
			if again := pgtype.AppendText(nil, sent, i, zone); !bytes.Equal(again, pgtype.AppendText(nil, v, i, zone)) {
				t.Fatalf("%s %q comes back from binary as %q", typ, text, again)
			}
		}
	}
}

func TestTypesAndOIDs(t *testing.T) {
	t.Parallel()
	for _, typ := range append(columntest.Types(), column.TVarchar,
		column.Type{Kind: column.Numeric, Precision: 10, Scale: 2},
		column.Type{Kind: column.Numeric, Precision: 3, Scale: -2},
		column.Type{Kind: column.Text, Varchar: true, Precision: 20},
		column.Type{Kind: column.Timestamptz, Precision: 4},
		column.Type{Kind: column.IntervalKind, Precision: 3},
	) {
		got, ok := pgtype.FromOID(pgtype.OID(typ), pgtype.Typmod(typ))
		if !ok || got != typ {
			t.Errorf("%s (oid %d, modifier %d) comes back as %s", typ, pgtype.OID(typ), pgtype.Typmod(typ), got)
		}
	}
}

func TestTextDoesNotAllocate(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	ctx := &pgtype.Context{Zone: zone}
	buf := make([]byte, 0, 256)
	for typ, in := range map[column.Type]string{
		column.TInt64: "42", column.TFloat64: "1.5", column.TNumeric: "12.50", column.TText: "hello", column.TTimestamp: "2024-01-02 03:04:05.5",
		column.TTimestamptz: "10/Oct/2000 13:55:36 -0700", column.TDate: "2024-01-02", column.TInterval: "1 day 02:03:04", column.TBool: "true",
		column.TJSONB: `{"b": 1, "a": [2]}`, column.TBytea: `\x00ff`,
	} {
		v := column.NewVector(typ, 4)
		text := []byte(in)
		if n := testing.AllocsPerRun(50, func() {
			v.Reset(typ)
			if err := pgtype.ParseText(v, text, ctx); err != nil {
				t.Fatal(err)
			}
			buf = pgtype.AppendText(buf[:0], v, 0, zone)
			buf = pgtype.AppendBinary(buf[:0], v, 0)
		}); n > 1 || n > 0 && typ != column.TJSONB { // jsonb's parser comes from a pool, which may be empty
			t.Errorf("%s: %v allocations", typ, n)
		}
	}
}

func FuzzParseText(f *testing.F) {
	types := columntest.Types()
	for i := range types {
		for _, s := range []string{"2024-01-02 03:04:05+02", "1 day 02:03:04", "{a,{b}}", "P1DT2H", "\\x00", "-1.5e3", "Jan 2 2024 BC", "[1:2]={1,2}"} {
			f.Add(byte(i), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, text []byte) {
		typ := types[int(kind)%len(types)]
		v := column.NewVector(typ, 1)
		if pgtype.ParseText(v, text, nil) != nil {
			if v.Len != 0 || len(v.Data) != 0 {
				t.Fatal("an error left a value behind")
			}
			return
		}
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
		out := pgtype.AppendText(nil, v, 0, nil)
		w := column.NewVector(typ, 1)
		if err := pgtype.ParseText(w, out, nil); err != nil || !v.Equal(0, w, 0) {
			t.Fatalf("%s %q: %q does not read back: %v", typ, text, out, err)
		}
	})
}

func FuzzParseBinary(f *testing.F) {
	types := columntest.Types()
	f.Add(byte(6), []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add(byte(16), []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7})
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		typ := types[int(kind)%len(types)]
		v := column.NewVector(typ, 1)
		if pgtype.ParseBinary(v, data) != nil {
			return
		}
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
		_ = pgtype.AppendText(nil, v, 0, nil)
		w := column.NewVector(typ, 1)
		if err := pgtype.ParseBinary(w, pgtype.AppendBinary(nil, v, 0)); err != nil || !v.Equal(0, w, 0) {
			t.Fatalf("%s %x does not come back: %v", typ, data, err)
		}
	})
}
