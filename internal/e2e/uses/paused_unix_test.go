//go:build unix

package uses_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
)

// A process that holds a lock is paused until another client has the lock. Then it
// continues, and writes as if it still held the lock. The resource refuses its write. Its
// lease says that it is lost, and its release does not harm the holder.
func TestAWriteOfAHolderThatWasPausedIsRefused(t *testing.T) {
	nightly(t, "it waits for real time")
	on(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		var resource fence.Memory
		write := func(f uint64) error { return resource.Guard(background, name, f, nothing) }
		paused := b.process(t, "write", name, brief.TTL)
		paused.hears("works")
		noError(t, paused.cmd.Process.Signal(syscall.SIGSTOP))
		lease := must(b.client(t).Mutex(name).Lock(soon(t)))(t)
		noError(t, write(lease.Fence()))
		noError(t, paused.cmd.Process.Signal(syscall.SIGCONT))
		must(paused.in.Write([]byte("\n")))(t)
		isError(t, write(must(strconv.ParseUint(paused.hears("writes"), 10, 64))(t)), pawl.ErrStale)
		for _, what := range []string{"heard", "released"} {
			if said := paused.hears(what); !strings.Contains(said, "lost") {
				t.Errorf("%s: %s; want that its lease is lost", what, said)
			}
		}
		noError(t, lease.Confirm(soon(t)))
		noError(t, write(lease.Fence()))
	})
}
