//go:build !linux

package testpg

import "syscall"

func processAttributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Setpgid: true}
}
