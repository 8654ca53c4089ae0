package etcdlock_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/timeshift"
)

// Clients whose wall clocks are an hour and a day apart lock one name in turn. Its fences
// rise, and a lease of another client continues.
func TestAClientsClockIsSet(t *testing.T) {
	t.Parallel()
	url, _, _ := ownPrefix(t)
	d := openDriver(t, url)
	held := mutex("held")
	held.TTL = 10 * time.Minute
	gets(t, d, held)
	var last uint64
	for _, by := range []time.Duration{0, time.Hour, -24 * time.Hour, 24 * time.Hour, -time.Hour, 0} {
		clock := timeshift.NewGo(t, by)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childURLVariable+"="+url)
		output, err := child.StdoutPipe()
		noError(t, err)
		child.Stderr = os.Stderr
		t.Cleanup(func() {
			if child.Process != nil && child.ProcessState == nil {
				_ = child.Process.Kill()
				_ = child.Wait()
			}
		})
		noError(t, clock.Start(child))
		var fence uint64
		var now int64
		_, err = fmt.Fscan(output, &fence, &now)
		if ended := child.Wait(); err != nil || ended != nil {
			t.Fatalf("by %v: %v, %v", by, err, ended)
		}
		if off := time.Until(time.Unix(now, 0)); off-by > time.Minute || by-off > time.Minute {
			t.Fatalf("the client's clock was off by %v; want %v", off, by)
		}
		if fence <= last {
			t.Errorf("by %v: fence %d after %d", by, fence, last)
		}
		last = fence
		refused(t, openDriver(t, url), mutex("held"))
		keeps(t, d, held)
	}
}
