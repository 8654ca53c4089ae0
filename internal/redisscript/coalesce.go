package redisscript

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A coalescer makes one script of the steps that several goroutines of this process take
// at the same time, each on a name of its own: most of what a step costs, here and on the
// server, is the sending. It takes the quick cases only, and in no cluster, where a
// script has one slot.
//
// Whoever comes while nothing is under way sends by itself. Whoever comes later leaves
// the step with what has gathered, for two lanes: goroutines that each take all of it,
// send it, and come back for more. Two, for one of them gathers while the other is
// answered; with more, scripts would be smaller. Only where the server is slow to answer,
// or far away, there are more of them, so that nobody waits for a lane.
type coalescer struct {
	sender Sender
	life   context.Context
	clock  *clock       // learns from each answer
	prefix string       // of the keys
	under  atomic.Int32 // steps that are under way
	free   sync.Pool    // of *step

	mu      sync.Mutex // protects all below, and the fields of each step
	next    []*step    // what has gathered
	lanes   []*lane
	timer   *time.Timer
	looking bool // the timer is set
}

const (
	// most is how many steps one script has at most: no other client waits for much
	// longer than 0.1 ms.
	most = 64

	// fewLanes is how many there are while the server answers within slowLane.
	fewLanes = 2
	slowLane = time.Millisecond

	// mostLanes is how many scripts are under way at once, of which a server that does
	// not answer may leave each behind.
	mostLanes = 64
)

// A lane has one script under way.
type lane struct {
	aside bool // on a connection of its own
	since time.Time
	batch []*step // nil while it gathers
}

type step struct {
	quickStep
	name     string
	deadline time.Time
	canceled <-chan struct{} // nil if its caller never gives up
	ctx      context.Context

	over   bool // it was answered, or given up
	answer int64
	err    error
	left   bool          // it was given up, and a lane may know it still
	done   chan struct{} // holds one
}

func newCoalescer(s Sender, prefix string, life context.Context, c *clock) *coalescer {
	return &coalescer{sender: s, prefix: prefix, life: life, clock: c, free: sync.Pool{New: func() any {
		return &step{done: make(chan struct{}, 1)}
	}}}
}

// do takes a step together with others. alone says that there were none, and it has not
// been taken. An answer of 0 says that it is not the quick case.
//
// Whoever gives up leaves the step to its lane. If that has not sent it yet, it does not.
// If it is just doing so, the release may overtake the claim: that is what the claim's
// end is for.
func (co *coalescer) do(ctx context.Context, now time.Time, name string, q quickStep) (answer int64, alone bool, err error) {
	if co.under.Add(1) == 1 {
		// The caller goes on by itself, and counts as under way until leave.
		return 0, true, nil
	}
	s, _ := co.free.Get().(*step)
	s.quickStep, s.name, s.ctx, s.canceled = q, name, ctx, driver.CallerDone(ctx)
	s.deadline, _ = ctx.Deadline()
	co.mu.Lock()
	co.next = append(co.next, s)
	if len(co.lanes) < fewLanes || len(co.lanes) < mostLanes && co.slowLocked(now) {
		co.openLocked()
	}
	if !co.looking {
		co.lookLocked(glance)
	}
	co.mu.Unlock()
	<-s.done
	answer, err = s.answer, s.err
	if !s.left {
		*s = step{done: s.done}
		co.free.Put(s)
	}
	return answer, false, err
}

// leave ends what do began.
func (co *coalescer) leave() { co.under.Add(-1) }

// slowLocked reports whether all lanes wait for an answer that takes long.
func (co *coalescer) slowLocked(now time.Time) bool {
	for _, l := range co.lanes {
		if l.batch == nil || now.Sub(l.since) < slowLane {
			return false
		}
	}
	return true
}

// openLocked begins another lane.
func (co *coalescer) openLocked() {
	l := &lane{aside: true}
	aside := 0
	for _, other := range co.lanes {
		if other.aside {
			aside++
		}
	}
	l.aside = aside < fewLanes
	co.lanes = append(co.lanes, l)
	go co.fly(l)
}

// fly is a lane's goroutine. It ends when nothing has gathered.
func (co *coalescer) fly(l *lane) {
	for {
		// The answers of one script wake many at a time, and they come back together.
		runtime.Gosched()
		batch := co.take(l)
		if batch == nil {
			return
		}
		p := co.send(l, batch)
		for _, s := range co.answer(l, batch, p) {
			s.done <- struct{}{}
		}
	}
}

// take takes what has gathered, as much as goes into one script. If that is nothing the
// lane is closed.
func (co *coalescer) take(l *lane) (batch []*step) {
	co.mu.Lock()
	defer co.mu.Unlock()
	for n := 0; len(batch) == 0 && len(co.next) > 0; {
		n = min(len(co.next), most)
		batch = slices.DeleteFunc(co.next[:n:n], func(s *step) bool { return s.over })
		co.next = co.next[n:]
	}
	if len(batch) == 0 {
		co.next = nil
		co.lanes = slices.DeleteFunc(co.lanes, func(o *lane) bool { return o == l })
		return nil
	}
	l.batch, l.since = batch, time.Now()
	return batch
}

func (co *coalescer) send(l *lane, batch []*step) Reply {
	c := pack(co.prefix, batch)
	began := l.since // only this goroutine writes it
	ctx, p := unwaited{co.life, began.Add(serverTimeout)}, Reply{}
	if aside, ok := co.sender.(Aside); ok && l.aside {
		p = aside.RunAside(ctx, Many, c)
	} else {
		p = co.sender.Run(ctx, Many, c)
	}
	if p.Err == nil && len(p.List) != len(batch)+1 {
		p.Err = &damage{"fewer answers than steps"}
	}
	if p.Err == nil {
		co.clock.learn(p.List[len(batch)], began)
	}
	return p
}

// unwaited is a ctx whose request is not given up: its goroutine waits for nothing else,
// and the client ends it. One that has no Done costs rueidis less.
type unwaited struct {
	context.Context
	deadline time.Time
}

func (u unwaited) Deadline() (time.Time, bool) { return u.deadline, true }
func (unwaited) Done() <-chan struct{}         { return nil }

// answer notes the answer of each step of a batch, and returns those that wait for it.
func (co *coalescer) answer(l *lane, batch []*step, p Reply) []*step {
	co.mu.Lock()
	defer co.mu.Unlock()
	l.batch = nil
	waiting := batch[:0]
	for i, s := range batch {
		if s.over {
			continue
		}
		s.over, s.answer, s.err = true, 0, nil
		switch {
		case p.Err == nil:
			s.answer = p.List[i]
		case !refused(p.Err):
			s.err = p.Err
		}
		waiting = append(waiting, s)
	}
	return waiting
}

// lookLocked has the timer look whether somebody has given up.
func (co *coalescer) lookLocked(in time.Duration) {
	co.looking = true
	if co.timer == nil {
		co.timer = time.AfterFunc(in, co.sweep)
	} else {
		co.timer.Reset(in)
	}
}

// sweep ends the steps whose caller has given up, wherever they are: to have each of them
// wait for its deadline and its ctx would cost more than the rest of it.
func (co *coalescer) sweep() {
	co.mu.Lock()
	defer co.mu.Unlock()
	now, over := time.Now(), co.life.Err() != nil
	n := len(co.next)
	co.next = slices.DeleteFunc(co.next, func(s *step) bool { return co.givenUpLocked(s, now, over) })
	if len(co.next) == 0 && n > 0 {
		co.next = nil
	}
	for _, l := range co.lanes {
		for _, s := range l.batch {
			co.givenUpLocked(s, now, over)
		}
	}
	if len(co.next) > 0 && len(co.lanes) < mostLanes && co.slowLocked(now) {
		co.openLocked()
	}
	if co.looking = len(co.lanes) > 0; co.looking {
		co.lookLocked(glance)
	}
}

// givenUpLocked ends a step whose caller has given up, and reports whether it is over.
func (co *coalescer) givenUpLocked(s *step, now time.Time, closed bool) bool {
	if s.over {
		return true
	}
	select {
	case <-s.canceled:
		s.err = gaveUp(s.ctx)
	default:
		switch {
		case closed:
			s.err = driver.ErrClosed
		case !s.deadline.IsZero() && !now.Before(s.deadline):
			s.err = context.DeadlineExceeded
		default:
			return false
		}
	}
	s.over, s.left, s.answer = true, true, 0
	s.done <- struct{}{}
	return true
}

// refused reports whether the server has run nothing, because of what may be the name of
// one of them: each asks for itself then.
func refused(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM") }
