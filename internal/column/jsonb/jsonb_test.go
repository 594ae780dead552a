package jsonb_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/pgerr"
)

func canonical(t *testing.T, s string) []byte {
	t.Helper()
	v, err := jsonb.Canonical(nil, []byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

func TestMembers(t *testing.T) {
	t.Parallel()
	v := canonical(t, `{"b": [1, "x, ]}", {"z": {}}], "a\"": null, "n": -1.50, "s": "q\"\\", "e": []}`)
	for name, want := range map[string]string{
		"b": `[1, "x, ]}", {"z": {}}]`, `a"`: "null", "n": "-1.50", "s": `"q\"\\"`, "e": "[]",
	} {
		got, ok := jsonb.Field(v, []byte(name))
		if !ok || string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, ok := jsonb.Field(v, []byte("no")); ok {
		t.Error("a field that is not there")
	}
	if jsonb.Len(v) != 5 {
		t.Errorf("%d members", jsonb.Len(v))
	}
	b, _ := jsonb.Field(v, []byte("b"))
	for i, want := range map[int]string{0: "1", 1: `"x, ]}"`, 2: `{"z": {}}`, -1: `{"z": {}}`, -3: "1"} {
		if got, ok := jsonb.Index(b, i); !ok || string(got) != want {
			t.Errorf("element %d: %s, want %s", i, got, want)
		}
	}
	for _, i := range []int{3, -4} {
		if _, ok := jsonb.Index(b, i); ok {
			t.Errorf("element %d is there", i)
		}
	}
	if s := jsonb.AppendText(nil, canonical(t, `"a\n\u00e4\u0001\"\\"`)); string(s) != "a\nä\x01\"\\" {
		t.Errorf("text %q", s)
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", jsonb.MaxDepth) + strings.Repeat("]", jsonb.MaxDepth)
	v := canonical(t, deep)
	if back, n, err := jsonb.DecodeKey(nil, jsonb.AppendKey(nil, v)); err != nil || n == 0 || !bytes.Equal(back, v) {
		t.Errorf("the key of the deepest value does not come back: %v", err)
	}
	if _, err := jsonb.Canonical(nil, []byte("["+deep+"]")); pgerr.Code(err) != pgerr.StatementTooComplex {
		t.Errorf("one level too deep: %v", err)
	}
	if _, err := jsonb.Canonical([]byte("kept"), []byte(strings.Repeat(`{"a":`, 1<<20))); err == nil {
		t.Error("no error")
	}
}

func TestGrowthIsBounded(t *testing.T) {
	t.Parallel()
	if v := canonical(t, "[1e1000, 1E-3]"); len(v) != len("[")+1001+len(", 0.001]") {
		t.Errorf("%d bytes", len(v))
	}
	bomb := "[" + strings.Repeat("1e131071,", 1000) + "0]"
	if _, err := jsonb.Canonical(nil, []byte(bomb)); pgerr.Code(err) != pgerr.ProgramLimitExceeded {
		t.Errorf("a value that would be 131 MB: %v", err)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[true,null,"\u00e4\n"],"a":1e3}`, `[]`, `-0.0`, `"\ud83d\ude00"`, `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := jsonb.Canonical(nil, in)
		if err != nil {
			return
		}
		again, err := jsonb.Canonical(nil, v)
		if err != nil || !bytes.Equal(v, again) {
			t.Fatalf("%q: canonical form %q is not: %q, %v", in, v, again, err)
		}
		key := jsonb.AppendKey(nil, v)
		back, n, err := jsonb.DecodeKey(nil, key)
		if err != nil || n != len(key) || jsonb.Compare(v, back) != 0 {
			t.Fatalf("%q: key comes back as %q (%d of %d bytes, %v)", v, back, n, len(key), err)
		}
		if _, err := jsonb.Canonical(nil, back); err != nil {
			t.Fatalf("%q: decoded key %q is not JSON: %v", v, back, err)
		}
	})
}

func FuzzDecodeKey(f *testing.F) {
	f.Add([]byte{0x60, 0, 0, 0, 1, 'a', 0, 0x20, 'b', 0})
	f.Fuzz(func(t *testing.T, key []byte) {
		_, n, err := jsonb.DecodeKey(nil, key)
		m, serr := jsonb.KeySize(key)
		if err == nil && (serr != nil || n != m) {
			t.Fatalf("%x: decoding takes %d bytes, KeySize says %d, %v", key, n, m, serr)
		}
		// Text that is not canonical must not hurt either.
		_ = jsonb.Compare(key, append([]byte("{"), key...))
		_, _ = jsonb.Field(key, []byte("a"))
		_, _ = jsonb.Index(key, -1)
	})
}
