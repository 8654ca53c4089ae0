package localqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// start is the time at which a test begins. Time is a value here: it passes when a test
// adds to it.
var start = time.Unix(1_700_000_000, 0)

const handoff = 10 * time.Millisecond

var errNet = errors.New("network down")

// person is a waiter in these tests: two of one kind can pass a hold on.
type person struct {
	kind string
	got  *hold
}

// hold is a Hold that can be passed on as often as a test says.
type hold struct {
	kind   string
	left   int
	passed int
	lost   bool
}

func (h *hold) Serves(p *person) bool { return h.kind == p.kind }
func (h *hold) Lost() bool            { return h.lost }

func (h *hold) Holder() driver.Holder {
	return driver.Holder{Fence: 1 + uint64(h.passed), Owner: driver.Owner{Client: "own"}}
}

func (h *hold) Pass(p *person) bool {
	if h.left == 0 {
		return false
	}
	h.left--
	h.passed++
	p.got = h
	return true
}

// place is a local queue with timers that fire when a test lets them.
type place struct {
	*Queues[*person]
	timers []*timer
}

type timer struct {
	in      time.Duration
	f       func()
	stopped bool
}

func newPlace() *place {
	p := &place{}
	p.Queues = New[*person](start, handoff, func(d time.Duration, f func()) func() bool {
		t := &timer{in: d, f: f}
		p.timers = append(p.timers, t)
		return func() bool { t.stopped = true; return true }
	})
	return p
}

func exclusive(name string) *driver.Claim {
	return &driver.Claim{Name: name, Weight: driver.Exclusive, Limit: driver.Unlimited}
}

func permits(name string, k, n int) *driver.Claim {
	return &driver.Claim{Name: name, Weight: k, Limit: n}
}

func reader(name string) *driver.Claim { return permits(name, 1, driver.Unlimited) }

// come calls Enter for a person.
func (p *place) come(c *driver.Claim, who *person, now time.Time) *Waiter[*person] {
	w := &Waiter[*person]{}
	p.Enter(w, c, who, now)
	return w
}

// enter calls Enter for a person of the kind that fits the weight.
func (p *place) enter(c *driver.Claim) *Waiter[*person] {
	return p.come(c, &person{kind: kindOf(c)}, start)
}

func kindOf(c *driver.Claim) string {
	return map[bool]string{true: "exclusive", false: "shared"}[c.Weight == driver.Exclusive]
}

// grant is Granted of an exclusive claim that may be passed on that often.
func (p *place) grant(name string, w *Waiter[*person], spare int) *hold {
	h := &hold{kind: "exclusive", left: spare}
	p.Granted(name, w, h, spare, start)
	return h
}

// visits returns the number of waiters that loops have visited.
func (p *place) visits() int {
	n := 0
	for i := range p.shard {
		n += p.shard[i].visits
	}
	return n
}

// asks reports whether it is w's turn to ask the backend.
func asks(w *Waiter[*person]) bool {
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

// position is the place that w gets, 0 if it gets none.
func position(t *testing.T, w *Waiter[*person]) int {
	t.Helper()
	held, ok := w.WaitReason().(*driver.HeldError)
	if !ok {
		return 0
	}
	return held.Position
}

// empty fails the test if a queue is left.
func (p *place) empty(t *testing.T) {
	t.Helper()
	if n := p.Names(); n > 0 {
		t.Errorf("%d queues are left", n)
	}
}
