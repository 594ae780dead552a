package vfs

import (
	"bytes"
	"errors"
	"testing"
)

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	t.Parallel()
	fs := NewCrashable()
	if err := MkdirAll(fs, "a/b"); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(fs, "a/b", "f", []byte("old")); err != nil {
		t.Fatal(err)
	}
	f, err := fs.OpenReadWrite("a/b/f", Unspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old", "new"} {
		got, err := ReadFile(CrashClone(fs, 0, nil), "a/b/f", 100)
		if err != nil || string(got) != want {
			t.Fatalf("%q %v, want %q", got, err, want)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(fs, "a/b/f", 2); err == nil {
		t.Fatal("a file beyond the limit was read")
	}
	if _, err := ReadFile(fs, "a/b/none", 2); !NotExist(err) {
		t.Fatal(err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, under := range map[string]FS{"memory": NewCrashable(), "disk": Default} {
		dir := "d"
		if name == "disk" {
			dir = t.TempDir()
		}
		fs := NewFaults(under)
		if err := MkdirAll(fs, dir); err != nil {
			t.Fatal(err)
		}
		path := fs.PathJoin(dir, "f")
		f, err := fs.OpenReadWrite(path, Unspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("0123456789"), 0); err != nil {
			t.Fatal(err)
		}
		fs.Fill(true)
		if _, err := f.WriteAt([]byte("x"), 10); !NoSpace(err) {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := f.WriteAt([]byte("x"), 9); err != nil {
			t.Fatalf("%s: within the file: %v", name, err)
		}
		if _, err := fs.Create(path+"2", Unspecified); !NoSpace(err) {
			t.Fatalf("%s: %v", name, err)
		}
		fs.Fill(false)
		boom := errors.New("boom")
		fs.FailSync("f", boom)
		if err := f.SyncData(); !errors.Is(err, boom) {
			t.Fatalf("%s: %v", name, err)
		}
		fs.FailSync("", nil)
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := Truncate(fs, path, f, 4); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err := ReadFile(fs, path, 100); err != nil || !bytes.Equal(b, []byte("0123")) {
			t.Fatalf("%s: %q %v", name, b, err)
		}
	}
}
