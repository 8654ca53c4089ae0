package worker

import (
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// WatchPauses calls f for each pause of this process until done is closed. In a pause the
// machine was busy, or a signal had stopped the process. If the process used a processor
// meanwhile, other goroutines kept this one from running, and f is not called.
func WatchPauses(done <-chan struct{}, c *Config, worker int, f func(*history.Fault)) {
	minPause := int64(history.PauseAtLeast(c.TTL))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last, used := Now(), processorTime(); ; last, used = Now(), processorTime() {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if now := Now(); now-last >= minPause && processorTime()-used < (now-last)/2 {
			f(&history.Fault{Kind: history.Pause, Worker: worker, From: last - c.Epoch, To: now - c.Epoch, Hit: 1})
		}
	}
}
