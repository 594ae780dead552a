package kv

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/leat-io/leat/internal/vfs"
)

func bulkContent(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestBulkTables writes tables in pieces of all sizes and reads them in order, with a jump now and then.
func TestBulkTables(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(3) {
		rng := rand.New(rand.NewPCG(seed, 3))
		for _, size := range []int{0, 1, bulkBytes - 1, bulkBytes, bulkBytes + 1, 5*bulkBytes + 123} {
			testBulkTable(t, seed, rng, size)
		}
	}
}

func testBulkTable(t *testing.T, seed uint64, rng *rand.Rand, size int) {
	t.Helper()
	fs := bulkFS{vfs.NewMem()}
	content := bulkContent(rng, size)
	f, err := fs.Create("1.sst", vfs.Unspecified)
	if err != nil {
		t.Fatal(err)
	}
	for rest := content; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(1<<rng.IntN(19)))
		if m, err := f.Write(rest[:n]); m != n || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", m, n, err)
		}
		rest = rest[n:]
		if rng.IntN(16) == 0 {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			if st, err := f.Stat(); err != nil || st.Size() != int64(size-len(rest)) {
				t.Fatalf("seed %d: %d bytes were written before a sync, the file has %v (%v)", seed, size-len(rest), st, err)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, err = fs.Open("1.sst", vfs.SequentialReads)
	if err != nil {
		t.Fatal(err)
	}
	off := 0
	for range 400 {
		if rng.IntN(20) == 0 {
			off = rng.IntN(size + 1)
		}
		p := make([]byte, 1+rng.IntN(1<<rng.IntN(19)))
		n, err := f.ReadAt(p, int64(off))
		want := content[off:min(off+len(p), size)]
		if !bytes.Equal(p[:n], want) {
			t.Fatalf("seed %d: a file of %d bytes, read of %d at %d: got %d bytes, not what was written", seed, size, len(p), off, n)
		}
		if (err == nil) != (n == len(p)) || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("seed %d: a file of %d bytes, read of %d at %d: %d bytes and error %v", seed, size, len(p), off, n, err)
		}
		if off += n; off == size {
			off = 0
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBulkErrors: a write that was put off and fails is an error of what comes after it, at the latest of Close.
func TestBulkErrors(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(vfs.File) error{
		"write": func(f vfs.File) error {
			_, err := f.Write(make([]byte, bulkBytes))
			return err
		},
		"sync":      func(f vfs.File) error { return f.Sync() },
		"sync data": func(f vfs.File) error { return f.SyncData() },
		"close":     func(f vfs.File) error { return f.Close() },
	} {
		faults := vfs.NewFaults(vfs.NewMem())
		f, err := bulkFS{faults}.Create("1.sst", vfs.Unspecified)
		if err != nil {
			t.Fatal(err)
		}
		faults.Fill(true)
		if _, err := f.Write([]byte("put off")); err != nil {
			t.Fatal(err)
		}
		if err := after(f); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
