package state

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapMemory takes n zeroed bytes from the system, outside the collector's heap.
func mapMemory(n int) []byte {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		// As when the runtime itself gets no memory: there is no way on.
		panic(fmt.Sprintf("state: the system gave no memory (%d bytes): %v", n, err))
	}
	return mem
}

func unmapMemory(mem []byte) {
	if err := unix.Munmap(mem); err != nil {
		panic(fmt.Sprintf("state: unmap %d bytes: %v", len(mem), err))
	}
}
