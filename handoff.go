package pawl

import (
	"time"

	"github.com/pawl-go/pawl/internal/localqueue"
)

// A waiter is a claim in the local queue of its name.
type waiter = localqueue.Waiter[*claim]

func newQueues(handoff time.Duration) *localqueue.Queues[*claim] {
	return localqueue.New[*claim](time.Now(), handoff, func(d time.Duration, f func()) func() bool {
		return time.AfterFunc(d, f).Stop
	})
}

// Alike, Pass and Lost make a hold a localqueue.Hold.

func (t *hold) Alike(cl *claim) bool { return t.claim.alike(cl) }

// Pass makes nothing of a hold that may be lost: a signal said so, and the backend has
// not answered yet. Whoever took it may have come back from that, and who locks after
// that has to get a greater fence.
func (t *hold) Pass(cl *claim) bool {
	if t.renewal.InDoubt() {
		return false
	}
	cl.passed = t.pass(cl, t.c.now())
	return cl.passed != nil
}

func (t *hold) Lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone != nil
}

// spare is how often the hold may be passed on when its lease with this fence is
// released, by what is left of its run.
func (t *hold) spare(fence uint64) int {
	left := int(t.end - fence - 1)
	if left == 0 || t.c.settings.LocalHandoff < 0 || !t.claim.exclusive() || !t.claim.alike(t.claim) {
		return 0
	}
	return left
}
