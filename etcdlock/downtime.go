package etcdlock

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
)

// While no client is open, the clock stands still. So a client that closes before the
// last lease ends, or before a closed name opens, starts a timer: two keys. The first is
// on an etcd lease; the second stores that lease's length, and the last tick. If the
// first key is gone when the next client opens, and no client has written a tick since,
// the length has passed. So a cron job that retries sees a dead holder expire.
//
// A process may end without Close, by log.Fatal or a signal. So a client that opens,
// finds a name held or closed, and receives no ticks of other clients also starts the
// timer.
//
// The etcd lease begins after the tick was written. etcd never ends the lease early.
// After an election it may end the lease late.

// startTimerAtOpen starts a timer if a lease lasts and no other client has written a
// tick since this client opened. If others seem to be open, it first waits for a tick,
// because a live client that uses the clock soon writes one.
func (s *store) startTimerAtOpen(ctx context.Context) {
	waitFor(ctx, s.clockTried)
	if t, ok := s.clock.Current(); !ok || !t.WasRead || s.leaseTimeLeft() <= 0 {
		return
	}
	if next, idle := s.clock.Idle(); s.hasPeers.Load() && !idle { // if the clock is idle, requestTick has waited
		brief, cancel := context.WithTimeout(ctx, ticked.MaxAdvance)
		waitFor(brief, next)
		cancel()
	}
	if t, ok := s.clock.Current(); ok && (t.WasRead || t.IsOwn) {
		if r, err := s.txn(ctx, nil, s.getTimer(), nil); err == nil {
			s.startTimer(ctx, r)
		}
	}
}

// startTimerAtClose starts a timer if a lease lasts and no other client is open.
func (s *store) startTimerAtClose(ctx context.Context) {
	if s.leaseTimeLeft() <= 0 {
		return
	}
	r, err := s.txn(ctx, nil, s.getTimer(), nil)
	if err == nil && r.Responses[2].GetResponseRange().GetCount() <= 1 {
		s.startTimer(ctx, r)
	}
}

// leaseTimeLeft returns the time until the end of the last lease that this client knows.
func (s *store) leaseTimeLeft() time.Duration {
	now, ok := s.clock.Window(time.Now())
	if !ok {
		return 0
	}
	return now.From.Until(s.lastLeaseEnd())
}

func (s *store) lastLeaseEnd() (last locktable.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.leaseEnds {
		last = max(last, end)
	}
	return last
}

// startTimer starts a timer for leaseTimeLeft, unless one runs that names the last tick.
// It first writes a tick, unless it has read an inactive tick that no timer names.
func (s *store) startTimer(ctx context.Context, read *clientv3.TxnResponse) {
	t, _ := s.clock.Current()
	rev, _, runs := parseTimer(read)
	if runs && rev == t.Rev {
		return
	}
	if !t.WasRead || t.IsActive() || rev == t.Rev {
		if s.tick(ctx, ticked.IdleAdvance) != nil {
			return
		}
		if t, _ = s.clock.Current(); !t.IsOwn {
			return // another client is open, and writes ticks
		}
	}
	seconds := int64(min(t.Instant.Until(s.lastLeaseEnd())+time.Second, ticked.IdleAdvance) / time.Second)
	lease, err := s.client.Grant(ctx, seconds)
	if err != nil {
		return
	}
	_, _ = s.txn(ctx, []clientv3.Cmp{s.lastTickIs(t)}, []clientv3.Op{
		clientv3.OpPut(s.timerKey(), fmt.Sprintf("%d %d", t.Rev, seconds)),
		clientv3.OpPut(s.timerLeaseKey(), "", clientv3.WithLease(lease.ID)),
	}, nil)
}

// getTimer returns operations that read the timer, and count the open clients.
func (s *store) getTimer() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.timerKey()), clientv3.OpGet(s.timerLeaseKey()),
		clientv3.OpGet(s.inboxKey(""), clientv3.WithPrefix(), clientv3.WithCountOnly()),
	}
}

// parseTimer returns the revision of the timer's tick, the timer's length, and whether
// the timer runs.
func parseTimer(r *clientv3.TxnResponse) (rev int64, length time.Duration, runs bool) {
	timer, lease := r.Responses[0].GetResponseRange().GetKvs(), r.Responses[1].GetResponseRange().GetKvs()
	if len(timer) == 0 {
		return 0, 0, false
	}
	var seconds int64
	_, err := fmt.Sscanf(string(timer[0].GetValue()), "%d %d", &rev, &seconds)
	if err != nil || seconds <= 0 || seconds > int64(ticked.IdleAdvance/time.Second) {
		return 0, 0, false
	}
	return rev, time.Duration(seconds) * time.Second, len(lease) > 0
}
