package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
)

// work is one goroutine of a process: its steps, one after the other.
func (p *process) work(steps []step) {
	for _, s := range steps {
		if !p.wait(s.after, nil) {
			return
		}
		c := p.w.history.beginCall(p, s)
		ctx, cancel := c.context()
		switch s.verb {
		case "break":
			p.breakLease(ctx, c)
		case "look":
			p.inspect(ctx, c)
		case "all":
			p.lockAll(ctx, c)
		case "once":
			p.doOnce(ctx, c)
		case "elect":
			p.runElection(ctx, c)
		case "leader":
			p.readLeader(ctx, c)
		case "watch":
			p.watch(c)
		case "close":
			p.w.history.noteAnswer(c, p.closeAndNote(ctx, p.close))
		default:
			p.claim(ctx, c)
		}
		cancel()
	}
}

// beginCall records the begin of a call.
func (h *history) beginCall(p *process, s step) *call {
	h.mu.Lock()
	c := &call{
		step: s, number: len(h.calls) + 1, process: p, began: h.w.now(),
		answered: never, ctxEnds: never, believedFrom: never, releaseBegan: never, lossSeen: never, releaseReturned: never,
	}
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	h.w.note(c.name, p, "calls", c)
	return c
}

// context returns the call's ctx. Every ctx ends, so that the checker finds a claim that
// starves.
func (c *call) context() (context.Context, context.CancelFunc) {
	w := c.process.w
	ctx, cancel := context.WithCancel(context.Background())
	last := w.maxWait()
	if c.timeout != never {
		last = min(last, c.timeout)
		c.ctxEnds = c.began + c.timeout
	}
	ctx, stop := context.WithTimeout(ctx, last)
	if c.cancel != never {
		t := time.AfterFunc(c.cancel, cancel)
		if c.ctxEnds == never || c.ctxEnds > c.began+c.cancel {
			c.ctxEnds = c.began + c.cancel
		}
		return ctx, func() { t.Stop(); stop(); cancel() }
	}
	return ctx, func() { stop(); cancel() }
}

func (s *call) options() []pawl.LockOption {
	var o []pawl.LockOption
	o = append(o, pawl.WithTTL(s.ttl))
	if s.verb != "break" && s.verb != "look" {
		if s.health && !s.process.w.planted.noHealth {
			o = append(o, pawl.WithHealth(s.healthCheck))
		}
		if s.delay > 0 {
			o = append(o, pawl.WithLockDelay(s.delay))
		}
		if s.minHold > 0 {
			o = append(o, pawl.WithMinHold(s.minHold))
		}
		if s.maxHold > 0 {
			o = append(o, pawl.WithMaxHold(s.maxHold))
		}
	}
	return o
}

type userFunc = func(context.Context) error

// claim is a call of Lock, TryLock, ForceLock, Do or TryDo, and the work under the lock.
func (p *process) claim(ctx context.Context, c *call) {
	lock, do := p.methodOf(c)
	if c.usesDo {
		err := do(ctx, func(ctx context.Context) error {
			fence, _ := pawl.FenceOf(ctx, c.name)
			p.w.history.noteGrant(c, fence, nil, func() bool { return ctx.Err() == nil }, ctx.Done())
			p.wait(c.hold, ctx.Done())
			p.w.history.noteStop(c)
			return nil
		})
		p.w.history.noteDo(c, err)
		return
	}
	var forced *shock
	if c.verb == "force" {
		forced = p.w.history.addShock(shock{name: c.name, what: "force", from: c.began, to: 1 << 62, by: c})
	}
	lease, err := lock(ctx)
	p.w.history.noteResult(c, lease, err)
	if forced != nil {
		p.w.history.noteForced(c, err)
	}
	if err != nil {
		return
	}
	if !p.useLease(ctx, c, lease) || c.usesTimeAfterLoss && !p.useTimeAfterLoss(lease) {
		return
	}
	p.w.history.noteStop(c)
	p.w.history.noteRelease(c, lease.Release(ctx))
}

// methodOf returns the method that a step calls.
func (p *process) methodOf(c *call) (lock func(context.Context) (*pawl.Lease, error), do func(context.Context, userFunc) error) {
	type locker interface {
		Lock(ctx context.Context) (*pawl.Lease, error)
		TryLock(ctx context.Context) (*pawl.Lease, error)
		Do(ctx context.Context, f func(context.Context) error) error
		TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error)
	}
	try, options := c.verb == "try", c.options()
	switch c.kind {
	case "reader":
		m := p.locks.RWMutex(c.name, options...)
		if try {
			return m.TryRLock, c.doOf(m.TryRDo)
		}
		return m.RLock, m.RDo
	case "permits":
		s := p.locks.Semaphore(c.name, c.limit, options...)
		if try {
			return func(ctx context.Context) (*pawl.Lease, error) { return s.TryAcquire(ctx, c.weight) }, c.doOf(s.TryDo)
		}
		return func(ctx context.Context) (*pawl.Lease, error) { return s.Acquire(ctx, c.weight) }, s.Do
	}
	var m locker = p.locks.Mutex(c.name, options...)
	if c.number%2 == 0 {
		m = p.locks.RWMutex(c.name, options...)
	}
	switch {
	case try:
		return m.TryLock, c.doOf(m.TryDo)
	case c.verb == "force":
		return p.locks.Mutex(c.name, options...).ForceLock, nil
	}
	return m.Lock, m.Do
}

// doOf makes a Do of a TryDo, and checks whether TryDo reports correctly that its
// function ran.
func (c *call) doOf(try func(context.Context, func(context.Context) error) (bool, error)) func(context.Context, userFunc) error {
	return func(ctx context.Context, f userFunc) error {
		ran := false
		reported, err := try(ctx, func(ctx context.Context) error { ran = true; return f(ctx) })
		if reported != ran {
			c.process.w.violated(c.name, "%v reports that its function ran: %v; it ran: %v", c, reported, ran)
		}
		if !reported && err == nil {
			err = pawl.ErrHeld
		}
		return err
	}
}

// breakLease is an operator's break of the current holder.
func (p *process) breakLease(ctx context.Context, c *call) {
	e, err := p.locks.Inspect(ctx, c.name)
	if err == nil && len(e.Holders) > 0 {
		fence := e.Holders[c.number%len(e.Holders)].Fence
		p.w.history.addShock(shock{name: c.name, what: "break", from: p.w.now(), to: 1 << 62, by: c, fence: fence})
		err = p.locks.Break(ctx, c.name, fence, &pawl.BreakOptions{Delay: cmp.Or(c.delay, -1)})
		p.w.history.noteForced(c, err)
	}
	p.w.history.noteAnswer(c, err)
}

func (p *process) inspect(ctx context.Context, c *call) {
	_, err := p.locks.Inspect(ctx, c.name)
	p.w.history.noteAnswer(c, err)
}

func (h *history) noteAnswer(c *call, err error) {
	h.mu.Lock()
	c.answered, c.err = h.w.now(), err
	h.mu.Unlock()
	h.w.note(c.name, c.process, "is answered", aboutCall(c, err))
}

// noteResult records the answer to a claim.
func (h *history) noteResult(c *call, lease *pawl.Lease, err error) {
	if err == nil {
		h.noteGrant(c, lease.Fence(), lease, func() bool { return lease.Err() == nil }, lease.Done())
		return
	}
	h.noteAnswer(c, err)
}

// noteGrant records that a user begins to believe in a lease, and checks exclusion.
func (h *history) noteGrant(c *call, fence uint64, lease *pawl.Lease, believes func() bool, done <-chan struct{}) {
	h.mu.Lock()
	now := h.w.now()
	c.granted, c.fence, c.lease, c.believes, c.done = true, fence, lease, believes, done
	c.believedFrom = now
	if lease != nil {
		c.answered = now
	}
	dead := c.process.isDead()
	h.mu.Unlock()
	h.w.note(c.name, c.process, "is granted", aboutCall(c, fence))
	if dead {
		return
	}
	go func() {
		<-done
		h.noteLoss(c)
	}()
	h.checkDeadline(c, lease)
	h.checkExclusion(c)
}

// noteLoss records that a user saw the end of its lease.
func (h *history) noteLoss(c *call) {
	var lost *pawl.LostError
	if c.lease != nil {
		lost, _ = errors.AsType[*pawl.LostError](c.lease.Err())
	}
	if c.believes() {
		h.w.violated(c.name, "the Done channel of %v is closed, but it has no error", c)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.releaseBegan != never || c.lease != nil && errors.Is(c.lease.Err(), pawl.ErrDetached) {
		return
	}
	c.lossSeen, c.lost = h.w.now(), lost
	h.events = append(h.events, event{h.w.now(), c.name, c.process.number, "sees its loss", aboutCall(c, c.lost)})
}

// noteStop records that a user stops to work, and releases next.
func (h *history) noteStop(c *call) {
	h.mu.Lock()
	c.releaseBegan = h.w.now()
	h.forgetLocked(c)
	h.mu.Unlock()
	h.checkDeadline(c, c.lease)
	h.w.note(c.name, c.process, "leaves", c)
}

func (h *history) noteRelease(c *call, err error) {
	h.mu.Lock()
	c.releaseReturned, c.releaseErr = h.w.now(), err
	h.mu.Unlock()
	h.w.note(c.name, c.process, "has released", aboutCall(c, err))
	if err == nil && (c.minHold > 0 || c.delay > 0) && (h.w.plan.backend == "memory" || h.w.plan.backend == "store") {
		h.w.after(c.believedFrom+h.w.keptFor(c)-h.w.now(), func() { h.checkReleased(c) })
	}
}

// noteDo records the answer of Do.
func (h *history) noteDo(c *call, err error) {
	h.mu.Lock()
	c.answered, c.releaseReturned = h.w.now(), h.w.now()
	if c.granted {
		c.releaseErr = err
	} else {
		c.err = err
	}
	h.mu.Unlock()
	h.w.note(c.name, c.process, "has done", aboutCall(c, err))
}

func aboutCall(c *call, what any) callNote { return callNote{c, what} }

type callNote struct {
	c    *call
	what any
}

func (a callNote) String() string {
	if a.what == nil {
		return fmt.Sprintf("#%d: ok", a.c.number)
	}
	return fmt.Sprintf("#%d: %v", a.c.number, a.what)
}
