//go:build unix

package uses_test

import (
	"syscall"
	"testing"
)

// A process that holds a lock is paused until another process has the lock. Then it
// continues, and writes as if it still held the lock. The database with the lock refuses
// its write. (In memory, it is a client of this process that does not check its lease.)
func TestAWriteOfAHolderThatWasPausedIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		c := b.client(t, nil)
		var write fencedWrite
		var goesOn func() (wrote string)
		if b.at == nil {
			write = inMemory()
			a, paused := b.mortal(t, brief)
			lease := must(a.Mutex(name).Lock(soon(t)))(t)
			paused.die()
			goesOn = func() string { return outcome(write(soon(t), name, lease.Fence())) }
		} else {
			var end func() error
			var err error
			write, end, err = inDatabase(b.at(t, "locks"))
			noError(t, err)
			t.Cleanup(func() { noError(t, end()) })
			paused := b.process(t, "write", name, brief.TTL)
			paused.hears("works")
			noError(t, paused.cmd.Process.Signal(syscall.SIGSTOP))
			goesOn = func() string {
				noError(t, paused.cmd.Process.Signal(syscall.SIGCONT))
				must(paused.in.Write([]byte("\n")))(t)
				return paused.hears("wrote")
			}
		}
		lease := must(c.Mutex(name).Lock(soon(t)))(t)
		if n, err := write(soon(t), name, lease.Fence()); n != 1 || err != nil {
			t.Errorf("the holder's write: %d, %v", n, err)
		}
		if wrote := goesOn(); wrote != "stale" {
			t.Errorf("the late one's write: %s", wrote)
		}
		if n, err := write(soon(t), name, lease.Fence()); n != 2 || err != nil {
			t.Errorf("the holder's next write: %d, %v", n, err)
		}
		if wrote := outcome(write(soon(t), name, 0)); wrote == "stale" || wrote == "2" || wrote == "3" {
			t.Errorf("a write without a fence: %s", wrote)
		}
	})
}
