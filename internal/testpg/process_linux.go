package testpg

import "syscall"

// processAttributes make the server end with the tests even when these are killed.
func processAttributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
}
