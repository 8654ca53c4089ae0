package check

import (
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// sim simulates a correct lock, with workers and faults, in virtual time. It writes a
// history like a run of pawl prove.
type sim struct {
	*rand.Rand
	now      int64
	events   []event // in the order of their times
	ttl      int64
	until    int64 // the time after which no claim begins
	kinds    []string
	names    []*simName
	workers  []*simWorker
	lines    []history.Line
	nextID   int64
	register map[string]*simRegister
	faults   []*history.Fault
}

type simRegister struct{ checked, plain, fence uint64 }

// simName is the server's state of one name.
type simName struct {
	history.Name
	fence   uint64
	holders map[int64]*simLease
	queue   []*simLease
}

// simLease is the state of a claim on the server and in its client.
type simLease struct {
	*history.Claim
	name         *simName
	expires      int64 // the end of the lease or of the place
	grantedFence uint64
	term         int64 // the time until which the client may trust the lease
	dead         bool  // the client is gone
	over         bool  // the client has its answer, or gave up
	read         simRegister
	refused      bool   // the register refused the read
	then         func() // runs when the claim has ended
}

type simWorker struct {
	index, life int
	stopped     int64 // the process does not run until then
	silent      int64 // no answer arrives until then
	current     *simLease
}

type event struct {
	at int64
	do func()
}

func (s *sim) after(d int64, do func()) {
	at := s.now + d
	i := sort.Search(len(s.events), func(i int) bool { return s.events[i].at > at })
	s.events = slices.Insert(s.events, i, event{at, do})
}

// latency returns the time that one message takes, in nanoseconds.
func (s *sim) latency() int64 { return 100_000 + s.Int64N(300_000) }

// onWorker runs a step of a worker's process after d, when the process is not stopped. It
// skips the step if the process has died.
func (s *sim) onWorker(w *simWorker, life int, d int64, do func()) {
	s.after(d, func() {
		switch {
		case w.life != life:
		case w.stopped > s.now:
			s.onWorker(w, life, w.stopped-s.now+s.Int64N(50_000), do)
		default:
			do()
		}
	})
}

// simulate returns the history of a run of this length. Its first quarter has no faults.
func simulate(seed uint64, workers int, length int64, kinds ...string) []history.Line {
	s := &sim{
		Rand: rand.New(rand.NewPCG(seed, 1)), ttl: ms(800), until: length, kinds: kinds, register: map[string]*simRegister{},
	}
	r, calm := run(), length/4
	r.TTL, r.Faults = s.ttl, s.kinds
	s.lines = append(s.lines, history.Line{Run: r})
	for _, n := range r.Names {
		s.names = append(s.names, &simName{Name: n, holders: map[int64]*simLease{}})
		s.register[n.Name] = &simRegister{}
	}
	for i := range workers {
		w := &simWorker{index: i, life: 1}
		s.workers = append(s.workers, w)
		s.onWorker(w, 1, s.Int64N(ms(5)), func() { s.act(w) })
	}
	if len(s.kinds) > 0 {
		s.after(calm, s.injectFault)
	}
	for len(s.events) > 0 {
		e := s.events[0]
		s.events, s.now = s.events[1:], e.at
		e.do()
	}
	for _, f := range s.faults {
		s.lines = append(s.lines, history.Line{Fault: f})
	}
	for _, n := range r.Names {
		s.lines = append(s.lines, history.Line{Left: &history.Left{At: s.now, Name: n.Name}})
	}
	return append(s.lines,
		history.Line{Phase: &history.Phase{Phase: history.Calm, To: calm}},
		history.Line{Phase: &history.Phase{Phase: history.Faults, From: calm, To: min(s.until, s.now)}},
		history.Line{End: &history.End{At: s.now}})
}

// finished reports whether no more claims begin.
func (s *sim) finished() bool { return s.now >= s.until }

// act makes one claim.
func (s *sim) act(w *simWorker) {
	if s.finished() {
		return
	}
	n := s.names[s.IntN(len(s.names))]
	s.nextID++
	l := &simLease{name: n, Claim: &history.Claim{
		ID: s.nextID, Worker: w.index, Life: w.life, Name: n.Name.Name, Mode: history.Whole, Weight: 1,
		How: history.Wait, Asked: s.now,
	}}
	switch {
	case n.Kind == history.Semaphore:
		l.Mode, l.Weight = history.Permits, 1+s.IntN(2)
	case n.Kind == history.RW && s.IntN(4) > 0:
		l.Mode = history.Shared
	}
	if s.IntN(5) == 0 {
		l.How = history.Try
	}
	w.current = l
	l.then = func() { s.onWorker(w, l.Life, s.Int64N(ms(2)), func() { s.act(w) }) }
	s.after(s.latency(), func() { s.request(w, l) })
	timeout := 4 * s.ttl
	if s.IntN(10) == 0 {
		timeout = s.Int64N(ms(20))
	}
	s.onWorker(w, l.Life, timeout, func() {
		if l.Answered == 0 && !l.over {
			s.giveUp(w, l)
		}
	})
}

func (n *simName) fits(c *history.Claim) bool {
	sum := c.Weight
	for _, h := range n.holders {
		if h.Mode == history.Whole || c.Mode == history.Whole {
			return false
		}
		sum += h.Weight
	}
	return c.Mode == history.Shared || sum <= n.Limit
}

// request handles a claim on the server.
func (s *sim) request(w *simWorker, l *simLease) {
	switch n := l.name; {
	case l.over || l.dead:
	case len(n.queue) == 0 && n.fits(l.Claim):
		s.grant(w, l)
	case l.How == history.Try:
		s.answer(w, l, func() { s.answered(w, l, history.Held) })
	default:
		l.expires = s.now + s.ttl
		n.queue = append(n.queue, l)
		s.keepPlace(w, l)
	}
}

// keepPlace renews the place of a waiter, or ends it if its client does not ask again.
func (s *sim) keepPlace(w *simWorker, l *simLease) {
	s.after(s.ttl/3, func() {
		switch {
		case !slices.Contains(l.name.queue, l):
			return
		case !l.dead && w.stopped <= s.now && w.silent <= s.now:
			l.expires = s.now + s.ttl
		case l.expires <= s.now:
			l.name.queue = slices.DeleteFunc(l.name.queue, func(x *simLease) bool { return x == l })
			s.serve(l.name)
			if !l.dead {
				s.onWorker(w, l.Life, ms(1), func() { // it sends its request again
					if !l.over && l.Answered == 0 {
						s.after(s.latency(), func() { s.request(w, l) })
					}
				})
			}
			return
		}
		s.keepPlace(w, l)
	})
}

// answer delivers an answer. If the client is dead or silent, the answer is lost, and the
// claim waits until the client gives up.
func (s *sim) answer(w *simWorker, l *simLease, do func()) {
	if l.dead || w.silent > s.now {
		return
	}
	s.onWorker(w, l.Life, s.latency(), func() {
		if !l.over {
			do()
		}
	})
}

func (s *sim) grant(w *simWorker, l *simLease) {
	n := l.name
	n.fence += 1 + s.Uint64N(3)
	l.grantedFence = n.fence
	n.holders[l.ID] = l
	l.expires = s.now + s.ttl
	if l.dead {
		l.expires = s.now + s.ttl/2
	}
	s.expire(l)
	s.answerGrant(w, l)
}

// answerGrant sends the answer of a grant.
func (s *sim) answerGrant(w *simWorker, l *simLease) {
	sent := s.now
	s.answer(w, l, func() {
		s.answered(w, l, history.Granted)
		l.Got, l.Fence, l.term = s.now, l.grantedFence, sent+s.ttl-ms(1)
		s.renew(w, l)
		s.section(w, l)
	})
}

// expire ends a lease that its client does not renew.
func (s *sim) expire(l *simLease) {
	s.after(l.expires-s.now, func() {
		if l.name.holders[l.ID] != l {
			return
		}
		if l.expires > s.now {
			s.expire(l)
			return
		}
		s.free(l)
	})
}

func (s *sim) free(l *simLease) {
	delete(l.name.holders, l.ID)
	s.serve(l.name)
}

func (s *sim) serve(n *simName) {
	for len(n.queue) > 0 && n.fits(n.queue[0].Claim) {
		l := n.queue[0]
		n.queue = n.queue[1:]
		s.grant(s.workers[l.Worker], l)
	}
}

func (s *sim) renew(w *simWorker, l *simLease) {
	s.onWorker(w, l.Life, s.ttl/3, func() {
		if l.over && l.Released != 0 {
			return
		}
		sent := s.now
		s.after(s.latency(), func() {
			if w.silent > s.now || l.name.holders[l.ID] != l {
				return
			}
			l.expires = s.now + s.ttl
			s.onWorker(w, l.Life, s.latency(), func() { l.term = sent + s.ttl - ms(1) })
		})
		s.renew(w, l)
	})
}

func (s *sim) answered(w *simWorker, l *simLease, answer string) {
	l.over = true
	l.Answered, l.Answer = s.now, answer
	if answer != history.Granted {
		s.done(w, l)
	}
}

// done writes the claim, and continues with the worker's next claim.
func (s *sim) done(w *simWorker, l *simLease) {
	s.lines = append(s.lines, history.Line{Claim: l.Claim})
	w.current = nil
	l.then()
}

func (s *sim) giveUp(w *simWorker, l *simLease) {
	l.over, l.dead = true, true
	answer := history.TimedOut
	if w.silent > s.now {
		answer = history.Unknown
	}
	s.answered(w, l, answer)
	if w.silent > s.now {
		return
	}
	s.after(s.latency(), func() {
		if l.name.holders[l.ID] == l {
			s.free(l)
			return
		}
		l.name.queue = slices.DeleteFunc(l.name.queue, func(x *simLease) bool { return x == l })
		s.serve(l.name)
	})
}

// section is the work of a holder.
func (s *sim) section(w *simWorker, l *simLease) {
	r := s.register[l.Name()]
	if l.Mode == history.Whole {
		if l.refused = l.Fence < r.fence; !l.refused {
			r.fence = l.Fence
		}
		l.read = *r
	}
	work := s.Int64N(ms(4))
	if s.IntN(100) == 0 {
		work = s.Int64N(2 * s.ttl)
	}
	end := s.now + work
	var checkTerm func()
	checkTerm = func() {
		if s.now < l.term {
			l.Believed = s.now
		} else if l.Lost == 0 {
			l.Lost, l.Woken = s.now, s.now
		}
		if s.now >= end || l.Lost != 0 {
			s.onWorker(w, l.Life, s.Int64N(ms(1)), func() { s.write(w, l) })
			return
		}
		s.onWorker(w, l.Life, min(end-s.now, ms(2)), checkTerm)
	}
	checkTerm()
}

// Name is the name of the lock.
func (l *simLease) Name() string { return l.name.Name.Name }

// write writes to the register, and releases the lease.
func (s *sim) write(w *simWorker, l *simLease) {
	r := s.register[l.Name()]
	if l.Mode == history.Whole && !l.refused && (l.Lost == 0 || s.IntN(2) == 0) {
		x := &history.Write{
			At: s.now, Claim: l.ID, Name: l.Name(), Fence: l.Fence,
			Read: l.read.checked, Before: r.checked, PlainRead: l.read.plain, PlainBefore: r.plain,
		}
		if x.Stale = l.Fence < r.fence; !x.Stale {
			x.Accepted = true
			r.checked, r.fence = l.read.checked+1, l.Fence
		}
		r.plain = l.read.plain + 1
		s.lines = append(s.lines, history.Line{Write: x})
	}
	l.Released = s.now
	s.after(s.latency(), func() {
		held := l.name.holders[l.ID] == l
		if held && w.silent <= s.now {
			s.free(l)
		}
		silent := w.silent > s.now
		s.onWorker(w, l.Life, s.latency(), func() {
			switch {
			case silent:
				l.Release = history.Unknown
			case held && l.Lost == 0:
				l.Release = history.OK
			default:
				l.Release = history.Late
			}
			l.Freed = s.now
			s.done(w, l)
		})
	})
}

// injectFault causes a fault, and later another one.
func (s *sim) injectFault() {
	if s.finished() {
		return
	}
	w := s.workers[s.IntN(len(s.workers))]
	f := &history.Fault{Kind: s.kinds[s.IntN(len(s.kinds))], Worker: w.index, From: s.now, To: s.now, Hit: 1}
	switch f.Kind {
	case history.Stop:
		f.To = s.now + s.ttl + s.Int64N(s.ttl)
		w.stopped = max(w.stopped, f.To)
	case history.Silence:
		f.To = s.now + s.ttl/2 + s.Int64N(2*s.ttl)
		w.silent = max(w.silent, f.To)
		// The client repeats the request that had no answer.
		s.onWorker(w, w.life, f.To-s.now+ms(1), func() {
			if l := w.current; l != nil && !l.over && l.name.holders[l.ID] == l {
				l.expires = s.now + s.ttl
				s.answerGrant(w, l)
			}
		})
	case history.Kill:
		s.kill(w)
	}
	s.faults = append(s.faults, f)
	s.after(s.Int64N(4*s.ttl), s.injectFault)
}

func (s *sim) kill(w *simWorker) {
	w.life++
	w.stopped = 0
	if l := w.current; l != nil {
		l.dead, l.over, w.current = true, true, nil
		l.Died = s.now
		if l.Answer == "" {
			l.Answer = history.Unknown
		}
		s.lines = append(s.lines, history.Line{Claim: l.Claim})
	}
	s.onWorker(w, w.life, ms(20), func() { s.act(w) })
}
