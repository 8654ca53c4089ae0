//go:build unix

package etcdtest

import "syscall"

// Stop makes the process stand still, until Continue.
func (m *Member) Stop() { _ = m.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (m *Member) Continue() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }
