package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// truncate cuts through the file itself where it can. A file in memory has no such call, so its head is copied to a new
// file that takes its name: what was synced before is synced again, so a crash finds the old file or the cut one.
func truncate(fs FS, path string, f File, size int64) error {
	for {
		w, ok := f.(interface{ unwrapFile() File })
		if !ok {
			break
		}
		f = w.unwrapFile()
	}
	if t, ok := f.(Truncater); ok {
		return t.Truncate(size)
	}
	if f.Fd() != InvalidFd {
		return os.Truncate(path, size)
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if size > st.Size() {
		return fmt.Errorf("truncate %s to %d bytes: it has only %d", path, size, st.Size())
	}
	head := make([]byte, size)
	if size > 0 {
		if n, err := f.ReadAt(head, 0); err != nil && !(errors.Is(err, io.EOF) && int64(n) == size) {
			return err
		}
	}
	return WriteFile(fs, fs.PathDir(path), fs.PathBase(path), head)
}
