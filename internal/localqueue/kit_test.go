package localqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// start is the time at which a test begins. Time passes only when a test adds to it.
var start = time.Unix(1_700_000_000, 0)

const handoff = 10 * time.Millisecond

var errNet = errors.New("network down")

// claimant is the claim of a waiter. A hold can be passed between claimants of one kind.
type claimant struct {
	kind string
	got  *hold
}

// hold is a Hold that can be passed on `left` times.
type hold struct {
	kind   string
	left   int
	passed int
	lost   bool
}

func (h *hold) Serves(claim *claimant) bool { return h.kind == claim.kind }
func (h *hold) Lost() bool                  { return h.lost }

func (h *hold) Holder() driver.Holder {
	return driver.Holder{Fence: 1 + uint64(h.passed), Owner: driver.Owner{Client: "own"}}
}

func (h *hold) Pass(claim *claimant) bool {
	if h.left == 0 {
		return false
	}
	h.left--
	h.passed++
	claim.got = h
	return true
}

// testQueues are Queues whose timers fire only when a test calls them.
type testQueues struct {
	*Queues[*claimant]
	timers []*timer
}

type timer struct {
	in      time.Duration
	f       func()
	stopped bool
}

func newTestQueues() *testQueues {
	qs := &testQueues{}
	qs.Queues = New[*claimant](start, handoff, func(d time.Duration, f func()) func() bool {
		t := &timer{in: d, f: f}
		qs.timers = append(qs.timers, t)
		return func() bool { t.stopped = true; return true }
	})
	return qs
}

func exclusive(name string) *driver.Claim {
	return &driver.Claim{Name: name, Weight: driver.Exclusive, Limit: driver.Unlimited}
}

func permits(name string, k, n int) *driver.Claim {
	return &driver.Claim{Name: name, Weight: k, Limit: n}
}

func reader(name string) *driver.Claim { return permits(name, 1, driver.Unlimited) }

// enterClaimant calls Enter for a claimant.
func (qs *testQueues) enterClaimant(c *driver.Claim, cl *claimant, now time.Time) *Waiter[*claimant] {
	w := &Waiter[*claimant]{}
	qs.Enter(w, c, cl, now)
	return w
}

// enter calls Enter for a claimant of the kind that fits the weight.
func (qs *testQueues) enter(c *driver.Claim) *Waiter[*claimant] {
	return qs.enterClaimant(c, &claimant{kind: kindOf(c)}, start)
}

func kindOf(c *driver.Claim) string {
	return map[bool]string{true: "exclusive", false: "shared"}[c.Weight == driver.Exclusive]
}

// grant calls Granted for an exclusive hold that may be passed on `spare` times.
func (qs *testQueues) grant(name string, w *Waiter[*claimant], spare int) *hold {
	h := &hold{kind: "exclusive", left: spare}
	qs.Granted(name, w, h, spare, start)
	return h
}

// visits returns the number of waiters that loops have visited.
func (qs *testQueues) visits() int {
	n := 0
	for i := range qs.shard {
		n += qs.shard[i].visits
	}
	return n
}

// isAsking reports whether it is w's turn to ask the backend.
func isAsking(w *Waiter[*claimant]) bool {
	if w.Turn() == nil {
		return true
	}
	select {
	case <-w.Turn():
		return w.Claim.got == nil && w.Err() == nil
	default:
		return false
	}
}

// position returns w's place in the queue, or 0 if it has none.
func position(t *testing.T, w *Waiter[*claimant]) int {
	t.Helper()
	held, ok := w.WaitReason().(*driver.HeldError)
	if !ok {
		return 0
	}
	return held.Position
}

// wantNoQueues fails the test if a queue is left.
func (qs *testQueues) wantNoQueues(t *testing.T) {
	t.Helper()
	if n := qs.Names(); n > 0 {
		t.Errorf("%d queues are left", n)
	}
}
