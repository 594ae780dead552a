package spill

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/vfs"
)

var seedFlag = flag.Uint64("seed", 0, "run the random tests with this seed")

func random(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func folder(t *testing.T, fs vfs.FS) *Folder {
	t.Helper()
	f, err := OpenFolder(fs, "data/spill", nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write makes a file of the blocks.
func write(t *testing.T, f *Folder, durable bool, blocks ...[]byte) File {
	t.Helper()
	w, err := f.Create(durable)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	file, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// read is the file's blocks.
func read(f *Folder, file File) (blocks [][]byte, err error) {
	r, err := f.Open(file, 1<<10)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return blocks, nil
		}
		if err != nil {
			return blocks, err
		}
		blocks = append(blocks, bytes.Clone(b))
	}
}

func equal(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	t.Parallel()
	rng := random(t)
	f := folder(t, vfs.NewMem())
	for range 12 {
		var blocks [][]byte
		for range rng.IntN(20) {
			b := make([]byte, []int{0, 10, 5000, writeBytes - 8, writeBytes, 3 * writeBytes}[rng.IntN(6)])
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			blocks = append(blocks, b)
		}
		kept := make([][]byte, len(blocks))
		for i := range blocks {
			kept[i] = bytes.Clone(blocks[i])
		}
		file := write(t, f, rng.IntN(2) == 0, blocks...)
		got, err := read(f, file)
		if err != nil || !equal(got, kept) {
			t.Fatalf("%d blocks in, %d out, error %v", len(kept), len(got), err)
		}
		if err := f.Remove(file.Number); err != nil {
			t.Fatal(err)
		}
	}
	if f.Written() == 0 {
		t.Error("nothing was counted as written")
	}
}

// A durable file is whole after a crash that loses everything that was not synced; one that nobody names is removed.
func TestADurableFileSurvivesACrash(t *testing.T) {
	t.Parallel()
	rng := random(t)
	fs := vfs.NewCrashable()
	f := folder(t, fs)
	want := [][]byte{[]byte("one"), make([]byte, 2*writeBytes)}
	file := write(t, f, true, want...)
	left := write(t, f, true, []byte("of an epoch that did not commit"))
	for percent := range 3 {
		f := folder(t, vfs.CrashClone(fs, percent*50, rng))
		got, err := read(f, file)
		if err != nil || !equal(got, want) {
			t.Fatalf("%d blocks, error %v", len(got), err)
		}
		if err := f.Clean(func(n uint64) bool { return n == file.Number }); err != nil {
			t.Fatal(err)
		}
		if _, err := read(f, left); !vfs.NotExist(err) {
			t.Errorf("a file that nobody names: %v", err)
		}
		if next := write(t, f, true); next.Number <= left.Number {
			t.Errorf("number %d was given again", next.Number)
		}
	}
}

// Whatever is changed in a file, reading it is an error, or gives a part of what was written.
func TestDamageIsSeen(t *testing.T) {
	t.Parallel()
	rng := random(t)
	fs := vfs.NewMem()
	f := folder(t, fs)
	file := write(t, f, true, []byte("the first block"), []byte("the second"), nil)
	whole, err := vfs.ReadFile(fs, f.path(file.Number), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		out, err := fs.Create(f.path(file.Number), vfs.Unspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(bytes.Clone(b)); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << rng.IntN(8)
		put(b)
		if _, err := read(f, file); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", i, err)
		}
		put(whole[:i])
		if _, err := read(f, file); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	put(whole)
	for _, other := range []File{{file.Number, file.Bytes, file.Sum + 1}, {file.Number, file.Bytes + 1, file.Sum}, {file.Number, 3, file.Sum}} {
		if _, err := read(f, other); !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

// The files of an owner go with it, whatever is open.
func TestScratchFilesGoWithTheirOwner(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	f := folder(t, fs)
	s := f.NewScratch()
	for i := range 3 {
		w, err := s.Create()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue // still being written
		}
		if err := w.Append([]byte("rows")); err != nil {
			t.Fatal(err)
		}
		file, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if _, err := s.Open(file, 100); err != nil { // still being read
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := fs.List("data/spill"); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// A disk that fails is an error that names what was being done, and leaves no file.
func TestAFailedSyncIsAnError(t *testing.T) {
	t.Parallel()
	faults := vfs.NewFaults(vfs.NewMem())
	f := folder(t, faults)
	failed := errors.New("the disk has failed")
	faults.FailSync(".spill", failed)
	w, err := f.Create(true)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Append([]byte("rows"))
	if _, err := w.Close(); !errors.Is(err, failed) || !errors.Is(err, ErrFiles) || !strings.Contains(err.Error(), ": sync a file: ") {
		t.Errorf("error %v", err)
	}
	if names, _ := faults.List("data/spill"); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// FuzzReader: no content makes a reader panic or take more memory than the file has bytes.
func FuzzReader(f *testing.F) {
	f.Add([]byte(magic), uint32(0))
	f.Add([]byte(magic+"\x03\x00\x00\x00\x00\x00\x00\x00abc"), uint32(0))
	f.Add([]byte(magic+"\xff\xff\xff\xff\x00\x00\x00\x00"), uint32(7))
	f.Fuzz(func(t *testing.T, content []byte, sum uint32) {
		fs := vfs.NewMem()
		dir := folder(t, fs)
		out, err := fs.Create(dir.path(1), vfs.Unspecified)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(len(content))
		if _, err := out.Write(bytes.Clone(content)); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		blocks, err := read(dir, File{Number: 1, Bytes: size, Sum: sum})
		total := 0
		for _, b := range blocks {
			total += blockHead + len(b)
		}
		if int64(total) > size || err == nil && int64(total+len(magic)) != size {
			t.Errorf("%d bytes in blocks of a file of %d: %v", total, size, err)
		}
	})
}
