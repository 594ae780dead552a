//go:build !linux

package flow

// courtesy leaves it to the system when another thread has the core.
type courtesy struct{}

func (*courtesy) offer() {}
