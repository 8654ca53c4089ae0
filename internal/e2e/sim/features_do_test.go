package sim

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

var (
	errOwn  = errors.New("the function's own error")
	errSick = errors.New("the holder is stuck")
)

// A confirmation is one answer of Confirm.
type confirmation struct {
	sent, answered moment
	err            error
}

// useLease does what a user does with a lease until its release. It returns false if the
// user has nothing left to release.
func (p *process) useLease(ctx context.Context, c *call, lease *pawl.Lease) bool {
	for range c.confirms {
		if !p.wait(c.hold/time.Duration(c.confirms+1), lease.Done()) {
			return false
		}
		x := confirmation{sent: p.w.now()}
		x.err = lease.Confirm(ctx)
		x.answered = p.w.now()
		p.w.history.mu.Lock()
		c.confirmed = append(c.confirmed, x)
		p.w.history.mu.Unlock()
		p.w.history.checkDeadline(c, lease)
		p.w.note(c.name, p, "has confirmed", aboutCall(c, x.err))
	}
	if !c.detaches {
		return p.wait(c.hold/time.Duration(c.confirms+1), lease.Done())
	}
	if !p.wait(c.hold/2, lease.Done()) {
		return false
	}
	handle, err := lease.Detach(ctx)
	if err != nil {
		p.w.note(c.name, p, "could not detach", aboutCall(c, err))
		return p.wait(c.hold/2, lease.Done())
	}
	handle = p.w.planted.patchHandle(handle)
	p.w.history.noteDetached(c, handle)
	if c.detachedFor != never {
		p.w.processes[c.attacher].attach(c, handle)
	}
	return false
}

// useTimeAfterLoss waits after a loss until LostError.StopBy.
func (p *process) useTimeAfterLoss(lease *pawl.Lease) bool {
	lost, _ := errors.AsType[*pawl.LostError](lease.Err())
	return lost == nil || p.wait(time.Until(lost.StopBy), nil)
}

// noteDetached records that a lease was detached.
func (h *history) noteDetached(c *call, handle pawl.Handle) {
	var in struct {
		Token []byte `json:"t"`
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(string(handle), "pawl1_"))
	if err != nil || json.NewDecoder(bytes.NewReader(b)).Decode(&in) != nil { // a checksum follows
		panic("a handle that cannot be read")
	}
	h.mu.Lock()
	c.releaseBegan, c.releaseReturned, c.detached = h.w.now(), h.w.now(), h.w.now()
	h.forgetLocked(c)
	h.detached[driver.Token(in.Token)] = c
	h.mu.Unlock()
	h.w.note(c.name, c.process, "has detached", c)
}

// attach attaches a lease that was detached. For the checker, the claim of the detached
// lease continues, because the name was held all the time.
func (p *process) attach(origin *call, handle pawl.Handle) {
	if !p.wait(origin.detachedFor, nil) {
		return
	}
	ctx := context.Background() // Attach bounds its request
	s := origin.step
	s.verb, s.hold, s.feature = "attach", origin.hold/2, feature{}
	c := p.w.history.beginCall(p, s)
	p.w.history.mu.Lock()
	c.attachedTo, c.sent, c.began = origin, c.began, origin.began
	origin.attached = c
	for token, x := range p.w.history.detached {
		if x == origin {
			delete(p.w.history.detached, token)
		}
	}
	p.w.history.mu.Unlock()
	lease, err := p.locks.Attach(ctx, handle)
	p.w.history.noteResult(c, lease, err)
	if err != nil || !p.wait(c.hold, lease.Done()) {
		return
	}
	p.w.history.noteStop(c)
	p.w.history.noteRelease(c, lease.Release(ctx))
}

// healthCheck is the health function of a holder.
func (c *call) healthCheck(context.Context) error {
	h := &c.process.w.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.unhealthyAfter != never && c.granted && h.w.now() >= c.believedFrom+c.unhealthyAfter {
		return errSick
	}
	return nil
}

// lockAll is a call of All.
func (p *process) lockAll(ctx context.Context, c *call) {
	names := append([]string{c.name}, c.others...)
	slices.Sort(names)
	calls, parts := []*call(nil), []pawl.Lockable(nil)
	for _, name := range slices.Compact(names) {
		x := c
		if name != c.name {
			s := c.step
			s.name, s.others = name, names
			s.kind, s.weight, s.limit = crowdedOr(name, "mutex").claim()
			x = p.w.history.beginCall(p, s)
			p.w.history.mu.Lock()
			x.ctxEnds = c.ctxEnds
			p.w.history.mu.Unlock()
		}
		calls = append(calls, x)
		if !p.w.planted.onlyFirstName || len(parts) == 0 {
			o := []pawl.LockOption{pawl.WithTTL(c.ttl)}
			if p.w.planted.holdsWhileWaiting { // All keeps locks with a value
				o = append(o, pawl.WithValue(nil))
			}
			if x.kind == "permits" {
				parts = append(parts, p.locks.Semaphore(name, x.limit, o...).Permits(x.weight))
			} else {
				parts = append(parts, p.locks.Mutex(name, o...))
			}
		}
	}
	all := pawl.All(parts...)
	take := all.Lock
	if c.usesTry {
		take = all.TryLock
	}
	t := p.w.turns.beginTurn(c)
	leases, err := take(context.WithValue(ctx, turnKey{}, t))
	p.w.turns.endTurn(t)
	for _, x := range calls {
		if err != nil {
			p.w.history.noteAnswer(x, err)
			continue
		}
		if leases.Fence(x.name) == 0 {
			p.w.violated(x.name, "%v was granted, but All has no lease of it", x)
		}
		p.w.history.noteAnswer(x, nil)
		p.w.history.noteGrant(x, leases.Fence(x.name), nil, func() bool { return leases.Err() == nil }, leases.Done())
	}
	if err != nil || !p.wait(c.hold, leases.Done()) {
		return
	}
	for _, x := range calls {
		p.w.history.noteStop(x)
	}
	err = leases.Release(ctx)
	for _, x := range calls {
		p.w.history.noteRelease(x, err)
	}
}

// crowdedOr returns the plan of a crowded name, or a plan of that kind for another name.
func crowdedOr(name, kind string) namePlan {
	for _, n := range crowded {
		if n.name == name {
			return n
		}
	}
	return namePlan{name: name, kind: kind}
}

// A task is one run of the function of a Once.
type task struct {
	key   string
	by    *call
	began moment
	done  bool // it returned nil
}

// doOnce is a call of Once.Do.
func (p *process) doOnce(ctx context.Context, c *call) {
	o := []pawl.OnceOption{pawl.WithTTL(c.ttl)}
	if c.atLeastOnce {
		o = append(o, pawl.WithAtLeastOnce())
	}
	h := &p.w.history
	ran := false
	reported, err := p.locks.Once(c.name, o...).Do(ctx, c.key, func(ctx context.Context) error {
		ran = true
		t := &task{key: c.key, by: c, began: p.w.now()}
		h.mu.Lock()
		h.tasks = append(h.tasks, t)
		h.mu.Unlock()
		fence, _ := pawl.FenceOf(ctx, c.name)
		h.noteGrant(c, fence, nil, func() bool { return ctx.Err() == nil }, ctx.Done())
		p.wait(c.hold, ctx.Done())
		h.noteStop(c)
		if c.outcome != "" {
			return errOwn
		}
		h.mu.Lock()
		t.done = true
		h.mu.Unlock()
		return nil
	})
	if reported != ran {
		p.w.violated(c.name, "%v reports that its function ran: %v; it ran: %v", c, reported, ran)
	}
	h.mu.Lock()
	c.hasRun, c.answer = reported, err
	h.mu.Unlock()
	h.noteDo(c, err)
}

// runElection is a call of Election.Run. Each term is a call of its own.
func (p *process) runElection(ctx context.Context, c *call) {
	h, w := &p.w.history, p.w
	value := func(n int) []byte { return fmt.Appendf(nil, "%s/%d", p.id(), n) }
	e := p.locks.Election(c.name, pawl.WithTTL(c.ttl), pawl.WithValue(value(0)))
	var valueIsSet atomic.Bool
	if c.setValueAfter > 0 {
		go func() {
			if p.wait(c.setValueAfter, ctx.Done()) && ctx.Err() == nil {
				valueIsSet.Store(true)
				err := e.SetValue(ctx, value(1))
				w.note(c.name, p, "has set its value", aboutCall(c, err))
			}
		}()
	}
	run := e.Run
	if w.planted.run != nil {
		run = w.planted.run(run)
	}
	began, terms := w.now(), []*call(nil)
	endTerm := func() {
		if len(terms) > 0 {
			h.mu.Lock()
			t := terms[len(terms)-1]
			t.releaseReturned, t.releaseErr = w.now(), errTerm
			h.mu.Unlock()
		}
	}
	var own error
	resigned := false
	err := run(ctx, func(ctx context.Context) error {
		endTerm()
		s := c.step
		s.verb, s.usesDo, s.feature, s.timeout = "term", true, feature{}, never
		t := h.beginCall(p, s)
		h.mu.Lock()
		t.began, t.answered = began, w.now()
		terms = append(terms, t)
		h.mu.Unlock()
		setBefore, hold := valueIsSet.Load(), c.hold
		if c.keepsLeading {
			hold = max(hold, w.faultFreeFrom()-w.now()+c.ttl+30*time.Second)
		}
		fence, _ := pawl.FenceOf(ctx, c.name)
		h.noteGrant(t, fence, nil, func() bool { return ctx.Err() == nil }, ctx.Done())
		alive := p.wait(hold, ctx.Done())
		if c.keepsLeading && alive && ctx.Err() == nil && setBefore {
			h.checkValueIsWritten(t, value(1))
		}
		resigns := strings.HasPrefix(c.outcome, "resigns") && len(terms) < 3
		resigned = resigns && alive && ctx.Err() == nil && e.Resign()
		own = nil
		if strings.HasSuffix(c.outcome, "error") {
			own = errOwn
		}
		h.noteStop(t)
		began = w.now()
		return own
	})
	endTerm()
	h.mu.Lock()
	if own != nil {
		c.ownError = true
	}
	c.answer, c.terms, c.resigned = err, terms, resigned
	h.mu.Unlock()
	h.noteAnswer(c, err)
}

// errTerm is the result of a term, because no answer reports whether the term was lost.
var errTerm = errors.New("a term that is over")

// readLeader is a call of Election.Leader. The value of a leader begins with its
// name.
func (p *process) readLeader(ctx context.Context, c *call) {
	l, err := p.locks.Election(c.name).Leader(ctx)
	if err == nil && len(l.Value) > 0 && !strings.HasPrefix(string(l.Value), l.Owner.Client+"/") {
		p.w.violated(c.name, "%v: %s leads, but its value belongs to another term: %s", c, l.Owner.Client, l.Value)
	}
	p.w.history.noteAnswer(c, err)
}

// A sighting is one entry that a watch yielded.
type sighting struct {
	at    moment
	entry pawl.Entry
}

// watch starts a loop over Watch. It ends with the schedule, or after a while.
func (p *process) watch(c *call) {
	ctx, cancel := context.WithCancel(p.w.watching)
	if c.hold != never {
		ctx, cancel = context.WithTimeout(p.w.watching, c.hold)
	}
	p.w.watchers.Go(func() {
		defer cancel()
		for e, err := range p.locks.Watch(ctx, c.name) {
			h := &p.w.history
			h.mu.Lock()
			if err == nil {
				c.sightings = append(c.sightings, sighting{p.w.now(), e})
			}
			c.answer = err
			h.mu.Unlock()
			fences := []uint64(nil)
			for _, x := range e.Holders {
				fences = append(fences, x.Fence)
			}
			p.w.note(c.name, p, "sees", aboutCall(c, fmt.Sprint(fences, len(e.Waiters), err)))
		}
	})
	p.w.history.noteAnswer(c, nil)
}
