package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// device is a file that has been written once, as the journal's segments are: what the disk does with it is what it can do at best.
type device struct {
	f    *os.File
	size int64
	at   int64
}

func openDevice(dir string, size int64) (*device, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "device.bench"))
	if err != nil {
		return nil, err
	}
	d := &device{f: f, size: size}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, at); err != nil {
			return nil, fmt.Errorf("preparing a file to measure the disk with: %w", err)
		}
	}
	return d, unix.Fdatasync(int(f.Fd()))
}

func (d *device) close() {
	_ = d.f.Close()
	_ = os.Remove(d.f.Name())
}

// write writes b behind what was written before, around the file's end, and syncs it.
func (d *device) write(b []byte) error {
	if d.at+int64(len(b)) > d.size {
		d.at = 0
	}
	if _, err := d.f.WriteAt(b, d.at); err != nil {
		return err
	}
	d.at += int64(len(b))
	return unix.Fdatasync(int(d.f.Fd()))
}

// syncs measures n writes of a size, each synced.
func (d *device) syncs(n, size int) (spread, error) {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * 7)
	}
	took := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if err := d.write(b); err != nil {
			return spread{}, err
		}
		took = append(took, time.Since(start))
	}
	return spreadOf(took), nil
}

// sequential is how many bytes a second the disk takes in writes of a size, each synced, within about the given time.
func (d *device) sequential(size int, within time.Duration) (float64, error) {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * 7)
	}
	start, n := time.Now(), 0
	for time.Since(start) < within {
		if err := d.write(b); err != nil {
			return 0, err
		}
		n += size
	}
	return float64(n) / time.Since(start).Seconds(), nil
}
