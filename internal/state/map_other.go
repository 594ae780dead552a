//go:build !linux

package state

func mapMemory(n int) []byte { return make([]byte, n) }

func unmapMemory([]byte) {}
