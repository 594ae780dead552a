//go:build unix

package node

import "syscall"

// openFiles is how many files of partitions may be held open: half of what the process may open, for connections need some, too.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(max(uint64(limit.Cur)/2, 64), maxOpenFiles))
}

// maxOpenFiles keeps what their handles take of memory below a few megabytes.
const maxOpenFiles = 16 << 10
