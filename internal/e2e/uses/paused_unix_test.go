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
// continues, and writes as if it still held the lock. The resource refuses the write. The
// lease of the process has an error, and its release does not free the new holder's lock.
func TestTheFenceRefusesAWriteOfAPausedHolder(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	onEachBackend(t, func(t *testing.T, b *backend) {
		name := freshName(t)
		var resource fence.Memory
		write := func(f uint64) error { return resource.Guard(background, name, f, nothing) }
		paused := b.startProcess(t, "write", name, shortTTL.TTL)
		paused.expect("works")
		noError(t, paused.cmd.Process.Signal(syscall.SIGSTOP))
		lease := must(b.client(t).Mutex(name).Lock(within(t)))(t)
		noError(t, write(lease.Fence()))
		noError(t, paused.cmd.Process.Signal(syscall.SIGCONT))
		must(paused.in.Write([]byte("\n")))(t)
		isError(t, write(must(strconv.ParseUint(paused.expect("writes"), 10, 64))(t)), pawl.ErrStale)
		for _, what := range []string{"lease", "release"} {
			if got := paused.expect(what); !strings.Contains(got, "lost") {
				t.Errorf("%s: %s; want an error about a lost lease", what, got)
			}
		}
		noError(t, lease.Confirm(within(t)))
		noError(t, write(lease.Fence()))
	})
}
