package redisscript

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A coalescer puts steps of several goroutines, each on another name, into one script,
// because sending is most of the cost of a step, here and on the server. It takes quick
// cases only: names without waiters, and, for a claim, without holders. It is not used in
// a cluster, where all keys of a script have to be in one slot.
//
// A caller whose step begins while no other is under way sends it alone. Later callers
// leave their steps to the two lanes. A lane is a goroutine that sends all gathered
// steps, waits for the answer, and repeats that. Steps gather for one lane while the
// other waits for its answer; with more lanes, scripts would be smaller. More lanes start
// only if the server is slow or far away, so that no step has to wait for a lane.
type coalescer struct {
	*Options
	conn          Conn
	life          context.Context
	clock         *clock // answers update it
	stepsUnderWay atomic.Int32
	busy          busyNames
	stepPool      sync.Pool // of *step

	mu             sync.Mutex // protects the fields below, and the fields of each step
	gathered       []*step    // steps that no lane has taken yet
	lanes          []*lane
	sweepScheduled bool
}

const (
	// maxStepsPerScript is the largest number of steps in one script, so that it blocks
	// other clients for little more than 0.1 ms.
	maxStepsPerScript = 64

	// usualLanes is the number of lanes while all answers take less than slowAnswer.
	usualLanes = 2
	slowAnswer = time.Millisecond

	// giveUpCheckInterval is the time between two checks for callers that have given up.
	giveUpCheckInterval = 5 * time.Millisecond

	// maxLanes is the largest number of scripts under way at once. If the server does not
	// answer, each lane waits until the client ends its request.
	maxLanes = 64
)

// A lane has one script under way.
type lane struct {
	ownConn bool // uses a connection of its own
	sentAt  time.Time
	batch   []*step // nil while no script is under way
}

type step struct {
	quickStep
	ctx context.Context

	ended     bool // it was answered, or its caller has given up
	answer    int64
	err       error
	abandoned bool          // its caller has given up, and a lane may still refer to it
	done      chan struct{} // capacity 1
}

func newCoalescer(conn Conn, o *Options, life context.Context, c *clock) *coalescer {
	return &coalescer{
		Options: o, conn: conn, life: life, clock: c, busy: busyNames{seed: maphash.MakeSeed(), began: time.Now()},
		stepPool: sync.Pool{New: func() any { return &step{done: make(chan struct{}, 1)} }},
	}
}

// do sends a step in a common script if other steps are under way. If none is, or if the
// step is not the quick case, do calls sendAlone.
func (co *coalescer) do(ctx context.Context, now time.Time, q *quickStep, sendAlone func() Reply) Reply {
	if co.busy.contains(q.claim.Name) {
		return sendAlone()
	}
	defer co.stepsUnderWay.Add(-1)
	if co.stepsUnderWay.Add(1) > 1 {
		if answer, err := co.sendTogether(ctx, now, q); err != nil || answer != 0 {
			return Reply{Int: answer, Err: err}
		}
		co.busy.add(q.claim.Name)
	}
	return sendAlone()
}

// sendTogether sends a step in a common script. Answer 0 means that the step is not the
// quick case.
//
// If a caller gives up, its step is not sent. If a lane is sending a claim at that
// moment, the caller's release may reach the server first. Then the end of the claim
// limits how late the server can grant it.
func (co *coalescer) sendTogether(ctx context.Context, now time.Time, q *quickStep) (answer int64, err error) {
	s, _ := co.stepPool.Get().(*step)
	s.quickStep, s.ctx = *q, ctx
	co.mu.Lock()
	co.gathered = append(co.gathered, s)
	if len(co.lanes) < usualLanes || len(co.lanes) < maxLanes && co.allLanesSlowLocked(now) {
		co.openLaneLocked()
	}
	if !co.sweepScheduled {
		co.sweepScheduled = true
		time.AfterFunc(giveUpCheckInterval, co.sweepGivenUp)
	}
	co.mu.Unlock()
	<-s.done
	answer, err = s.answer, s.err
	if !s.abandoned {
		*s = step{done: s.done}
		co.stepPool.Put(s)
	}
	return answer, err
}

// allLanesSlowLocked reports whether each lane has waited for slowAnswer or longer.
func (co *coalescer) allLanesSlowLocked(now time.Time) bool {
	for _, l := range co.lanes {
		if l.batch == nil || now.Sub(l.sentAt) < slowAnswer {
			return false
		}
	}
	return true
}

// openLaneLocked starts another lane.
func (co *coalescer) openLaneLocked() {
	ownConns := 0
	for _, other := range co.lanes {
		if other.ownConn {
			ownConns++
		}
	}
	l := &lane{ownConn: ownConns < usualLanes}
	co.lanes = append(co.lanes, l)
	go co.runLane(l)
}

// runLane is a lane's goroutine. It ends when no step has gathered.
func (co *coalescer) runLane(l *lane) {
	for {
		// The last answers woke many callers. Let them add their next steps first.
		runtime.Gosched()
		batch := co.takeBatch(l)
		if batch == nil {
			return
		}
		p := co.sendBatch(l, batch)
		for _, s := range co.storeAnswers(l, batch, p) {
			s.done <- struct{}{}
		}
	}
}

// takeBatch takes the steps that have gathered, as many as fit into one script. If there
// are none, it closes the lane.
func (co *coalescer) takeBatch(l *lane) (batch []*step) {
	co.mu.Lock()
	defer co.mu.Unlock()
	for len(batch) == 0 && len(co.gathered) > 0 {
		n := min(len(co.gathered), maxStepsPerScript)
		batch = slices.DeleteFunc(co.gathered[:n:n], func(s *step) bool { return s.ended })
		co.gathered = co.gathered[n:]
	}
	if len(batch) == 0 {
		co.gathered = nil
		co.lanes = slices.DeleteFunc(co.lanes, func(o *lane) bool { return o == l })
		return nil
	}
	l.batch, l.sentAt = batch, time.Now()
	return batch
}

func (co *coalescer) sendBatch(l *lane, batch []*step) Reply {
	c := co.pack(batch)
	c.OwnConn = l.ownConn
	began := l.sentAt // only this goroutine writes it
	p := run(deadlineContext{co.life, began.Add(serverTimeout)}, co.conn, Many, c)
	if p.Err == nil && len(p.List) != len(batch)+1 {
		p.Err = &damage{"fewer answers than steps"}
	}
	if p.Err == nil {
		co.clock.learn(p.List[len(batch)], began)
	}
	return p
}

// deadlineContext is a ctx that has a deadline, but is never cancelled. The library ends
// the request of a lane at the deadline. A ctx without Done costs rueidis less.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

func (d deadlineContext) Deadline() (time.Time, bool) { return d.deadline, true }
func (deadlineContext) Done() <-chan struct{}         { return nil }

// storeAnswers stores the answers of a batch in its steps. It returns the steps whose
// callers still wait.
func (co *coalescer) storeAnswers(l *lane, batch []*step, p Reply) []*step {
	co.mu.Lock()
	defer co.mu.Unlock()
	l.batch = nil
	waiting := batch[:0]
	for i, s := range batch {
		if s.ended {
			continue
		}
		s.ended, s.answer, s.err = true, 0, nil
		switch {
		case p.Err == nil:
			s.answer = p.List[i]
		case !isNoPerm(p.Err):
			s.err = p.Err
		}
		waiting = append(waiting, s)
	}
	return waiting
}

// sweepGivenUp ends the steps whose callers have given up, whether they are gathered or
// sent. A timer and a ctx for each caller would cost more than the rest of the step.
func (co *coalescer) sweepGivenUp() {
	co.mu.Lock()
	defer co.mu.Unlock()
	now, closed := time.Now(), co.life.Err() != nil
	co.gathered = slices.DeleteFunc(co.gathered, func(s *step) bool { return co.endIfGivenUpLocked(s, now, closed) })
	for _, l := range co.lanes {
		for _, s := range l.batch {
			co.endIfGivenUpLocked(s, now, closed)
		}
	}
	if len(co.gathered) > 0 && len(co.lanes) < maxLanes && co.allLanesSlowLocked(now) {
		co.openLaneLocked()
	}
	if co.sweepScheduled = len(co.lanes) > 0; co.sweepScheduled {
		time.AfterFunc(giveUpCheckInterval, co.sweepGivenUp)
	}
}

// endIfGivenUpLocked ends a step if its caller has given up. It reports whether the step
// has ended.
func (co *coalescer) endIfGivenUpLocked(s *step, now time.Time, closed bool) bool {
	if s.ended {
		return true
	}
	if s.err = ctxErrAt(s.ctx, now); closed {
		s.err = driver.ErrClosed
	}
	if s.err == nil {
		return false
	}
	s.ended, s.abandoned, s.answer = true, true, 0
	s.done <- struct{}{}
	return true
}

// isNoPerm reports whether the server refused the whole script, maybe because the user
// may not use one of its keys. Each caller then sends its step alone.
func isNoPerm(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM") }

// busyNames has the names that were not the quick case in the last busyTime, because they
// were held or had waiters. The driver sends their steps alone, because they would fail
// in a common script. Names with equal hashes share an element of until; that only makes
// some steps slower.
type busyNames struct {
	seed  maphash.Seed
	began time.Time
	until [1 << 10]atomic.Int64 // the end of the busy time, counted from began; 0 if there was none
}

const busyTime = time.Second

func (b *busyNames) untilOf(name string) *atomic.Int64 {
	return &b.until[maphash.String(b.seed, name)%uint64(len(b.until))]
}

func (b *busyNames) add(name string) { b.untilOf(name).Store(int64(time.Since(b.began) + busyTime)) }

func (b *busyNames) contains(name string) bool {
	until := b.untilOf(name).Load()
	return until != 0 && int64(time.Since(b.began)) < until
}

// A quickStep is a claim or a release for lua/many.lua.
type quickStep struct {
	claim    driver.Claim // for a release: only its name and its token
	claimant string       // the result of claimantArg
	end      int64        // the end of a claim, on the server's clock
}

func (q *quickStep) isClaim() bool { return q.claim.TTL > 0 }

// sharesSettings reports whether a claim asks for one fence, without a minimum, and has
// the same other settings as another claim.
func (q *quickStep) sharesSettings(other *quickStep) bool {
	c, o := &q.claim, &other.claim
	return c.TTL == o.TTL && c.LockDelay == o.LockDelay && q.claimant == other.claimant && fencesOf(c) == 1 && c.MinFence == 0
}

// pack makes the call of a batch. The first argument of the script has the settings of
// the first claim, and the latest end. The argument of a claim with the same settings
// then only has its token, and the time by which its end is earlier than the latest.
func (o *Options) pack(batch []*step) Call {
	var first *step
	latest, size := int64(0), 512
	for _, s := range batch {
		size += len(o.Prefix) + len(s.claim.Name) + 32
		if s.isClaim() {
			first, latest = cmp.Or(first, s), max(latest, s.end)
		}
	}
	p := packer{parts: make([]string, 0, 1+2*len(batch))}
	p.Grow(size)
	for _, s := range batch {
		p.key(o.Prefix, escaper.Replace(s.claim.Name), keyLetters[0])
	}
	buffer := make([]byte, 0, 512)
	if first != nil {
		b := appendNumbers(o.appendTimes(buffer, &first.claim), latest, micros(first.claim.LockDelay))
		p.Write(append(b, first.claimant...))
	}
	p.endPart()
	for _, s := range batch {
		switch earlier := latest - s.end; {
		case !s.isClaim():
			p.Write(s.claim.Token[:])
		case s.sharesSettings(&first.quickStep) && earlier < 1<<32:
			p.Write(s.claim.Token[:])
			p.Write(binary.BigEndian.AppendUint32(buffer, uint32(earlier)))
		default: // the argument of a claim that is sent alone
			p.Write(o.appendClaimArg(buffer, &s.claim, s.end, s.claimant))
		}
		p.endPart()
	}
	return Call{Keys: p.parts[:len(batch):len(batch)], Args: p.parts[len(batch):]}
}
