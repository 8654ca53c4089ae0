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

// together makes one script of the steps that several goroutines of this process take at the same time, each on a name of its
// own: half of what a step costs the server, and most of what it costs us, is the sending. It takes the quick cases only,
// and in no cluster, where a script has one slot.
//
// Nothing is waited for. Who comes alone sends alone. Who comes while others are under way lets the scheduler run those that
// are ready, once: the answers of one script wake many at a time, and they come back together.
type together struct {
	sender Sender
	life   context.Context
	clock  *clock       // learns from each answer
	under  atomic.Int32 // steps that are under way
	free   sync.Pool    // of *step

	mu     sync.Mutex // protects all below
	next   []*step
	led    bool // somebody is about to take them
	flying int  // scripts that are under way
	full   bool // they are as many as may be: the first that is back takes what is next
}

const (
	// most is how many steps one script has at most: no other client waits for much longer than 0.1 ms.
	most = 64

	// mostFlying is how many scripts are under way at once, of which a server that does not answer may leave each behind.
	mostFlying = 64
)

// A step of one goroutine.
type step struct {
	key, arg string
	answer   int64
	err      error
	done     chan struct{} // holds one
	late     *time.Timer   // stopped while nobody waits
	fate     atomic.Int32  // sent or given up, whichever came first
}

const (
	sent = 1 + iota
	givenUp
)

func newTogether(s Sender, life context.Context, c *clock) *together {
	return &together{sender: s, life: life, clock: c, free: sync.Pool{New: func() any {
		late := time.NewTimer(time.Hour)
		late.Stop()
		return &step{done: make(chan struct{}, 1), late: late}
	}}}
}

// do takes a step together with others. alone says that there were none, and it has not been taken. An answer of 0
// says that it is not the quick case.
func (t *together) do(ctx context.Context, key, arg string) (answer int64, alone bool, err error) {
	if t.under.Add(1) == 1 {
		// The caller goes on by itself, and counts as under way until leave.
		return 0, true, nil
	}
	s, _ := t.free.Get().(*step)
	s.key, s.arg = key, arg
	s.fate.Store(0)
	t.mu.Lock()
	t.next = append(t.next, s)
	lead := !t.led
	t.led = true
	t.mu.Unlock()
	if lead {
		runtime.Gosched()
		t.mu.Lock()
		if len(t.next) == 1 && !t.full {
			t.next, t.led = nil, false
			t.mu.Unlock()
			t.free.Put(s)
			return 0, true, nil
		}
		t.launch()
		t.mu.Unlock()
	}
	if deadline, ok := ctx.Deadline(); ok {
		s.late.Reset(time.Until(deadline))
	}
	// Whoever gives up leaves s to the goroutine that sends it. If it has not yet, it does not. If it is just doing so, the
	// release may overtake the claim: that is what the claim's end is for.
	select {
	case <-s.done:
		answer, err = s.answer, s.err
		s.late.Stop()
		t.free.Put(s)
		return answer, false, err
	case <-s.late.C:
		s.fate.CompareAndSwap(0, givenUp)
		return 0, false, context.DeadlineExceeded
	case <-driver.CallerDone(ctx):
		s.fate.CompareAndSwap(0, givenUp)
		s.late.Stop()
		return 0, false, gaveUp(ctx)
	}
}

// launch sends what has gathered, in goroutines of its own, for the ctx of one is not that of the others. The caller holds
// the mutex.
func (t *together) launch() {
	for ; len(t.next) > 0 && t.flying < mostFlying; t.flying++ {
		n := min(len(t.next), most)
		all := t.next[:n:n]
		t.next = t.next[n:]
		go func() {
			t.send(all)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.flying--
			if t.full {
				t.launch()
			}
		}()
	}
	t.full = len(t.next) > 0
	if t.led = t.full; !t.full {
		t.next = nil
	} else if len(t.next) > most*mostFlying {
		t.next = slices.DeleteFunc(t.next, func(s *step) bool { return s.fate.Load() == givenUp })
	}
}

// leave ends what do began.
func (t *together) leave() { t.under.Add(-1) }

func (t *together) send(all []*step) {
	all = slices.DeleteFunc(all, func(s *step) bool { return !s.fate.CompareAndSwap(0, sent) })
	if len(all) == 0 {
		return
	}
	c := Call{Keys: make([]string, len(all)), Args: make([]string, len(all))}
	for i, s := range all {
		c.Keys[i], c.Args[i] = s.key, s.arg
	}
	began := time.Now()
	p := t.sender.Run(t.life, Many, c)
	if p.Err == nil && len(p.List) != len(all)+1 {
		p.Err = &damage{"fewer answers than steps"}
	}
	if p.Err == nil {
		t.clock.learn(p.List[len(all)], began)
	}
	for i, s := range all {
		s.answer, s.err = 0, nil
		switch {
		case p.Err == nil:
			s.answer = p.List[i]
		case !refused(p.Err):
			s.err = p.Err
		}
		s.done <- struct{}{}
	}
}

// refused reports whether the server has run nothing, because of what may be the name of one of them: each asks for itself
// then.
func refused(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM") }
