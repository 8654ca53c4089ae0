package worker

import "time"

// WatchPauses calls f for each time, of least or longer, in which this process did not
// run, until done is closed: the machine was busy, or a signal had stopped the process.
// If the process used a processor meanwhile, that is no pause: its goroutines kept each
// other from running.
func WatchPauses(done <-chan struct{}, least time.Duration, f func(from, to int64)) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last, used := Now(), processorTime(); ; last, used = Now(), processorTime() {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if now := Now(); now-last >= int64(least) && processorTime()-used < (now-last)/2 {
			f(last, now)
		}
	}
}
