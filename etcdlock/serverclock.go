package etcdlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

const (
	// Steps take effect only under an active tick. maxTickStep is the most by which the
	// tick after an active tick may be later. maxReadingLead is the largest lead of a
	// client's reading over the tick that the client has just received. A lease lasts
	// longer by the sum of both. If they were smaller, the clock would lose time whenever
	// a tick takes longer than maxReadingLead to arrive.
	maxTickStep    = 250 * time.Millisecond
	maxReadingLead = 100 * time.Millisecond

	// tickInterval is the time between two ticks while the clock is in use. It is so
	// short that the clock loses no time when another client has to take over, see due.
	tickInterval = 150 * time.Millisecond

	// The loop writes a due tick later by tickGrace, so that a step in that time can
	// write it in its own request.
	tickGrace = 20 * time.Millisecond

	// maxRestStep is the most by which the tick after an inactive tick may be later.
	maxRestStep = time.Hour

	// A client that has computed no step for restAfter lets the clock rest.
	restAfter = 500 * time.Millisecond

	// tickReplyTimeout is the time for which a client that opens waits for a tick of
	// another client.
	tickReplyTimeout = 150 * time.Millisecond

	// idleTickInterval is the time between two ticks while no client uses the clock.
	// longIdleTickInterval is the same when the last use is longer ago than a request can
	// last.
	idleTickInterval     = time.Second
	longIdleTickInterval = 10 * time.Second

	// distantTrip is the answer time of a client so far away that most of its requests
	// find a later tick than the one it has received. maxWidth bounds how long after the
	// client's reading a step may take effect, see widthLocked.
	distantTrip = 50 * time.Millisecond
	maxWidth    = 2 * time.Second
)

// A tick is the content of the clock's key: the time of the clock, and room, how much
// later the next tick may be. A tick whose room is at most maxTickStep is active: steps
// can take effect under it.
type tick struct {
	is    locktable.Instant
	room  time.Duration
	value string    // the text in the key, different for each tick
	id    string    // the unique part of value
	old   string    // the id of the tick that it follows
	rev   int64     // the revision of the key
	at    time.Time // when this client's reading of the clock was equal to is, see learn
	own   bool      // this client has written it
	read  bool      // this client has read it: how long ago it was written is not known
}

// newTick makes a tick that is to be written after another one. Its id is unique, because
// after an operator has restored a snapshot, the same revision, and perhaps the same
// time, comes again.
func newTick(old tick, is locktable.Instant, room time.Duration) tick {
	t := tick{is: is, room: room, id: rand.Text()[:8], old: old.id}
	t.value = fmt.Sprintf("%s %d %s %s", tickPrefix(is, room), room.Microseconds(), t.id, cmp.Or(t.old, "-"))
	return t
}

// tickPrefix is the beginning of the key's value. It sorts active ticks by time, and
// before all inactive ones.
func tickPrefix(is locktable.Instant, room time.Duration) string {
	if room <= maxTickStep {
		return fmt.Sprintf("a%020d", is)
	}
	return fmt.Sprintf("z%020d", is)
}

// parseTick reads a tick that was written.
func parseTick(value string, rev int64) (tick, error) {
	t := tick{value: value, rev: rev}
	fields := strings.Fields(value)
	if len(fields) != 4 {
		return t, fmt.Errorf("the clock's key says %.40q, which is no time", value)
	}
	is, err1 := strconv.ParseInt(fields[0][1:], 10, 64)
	room, err2 := strconv.ParseInt(fields[1], 10, 64)
	t.is, t.room, t.id, t.old = locktable.Instant(is), time.Duration(room)*time.Microsecond, fields[2], fields[3]
	if err1 != nil || err2 != nil || is <= 0 || room <= 0 || t.room > maxRestStep || fields[0] != tickPrefix(t.is, t.room) {
		return t, fmt.Errorf("the clock's key says %.40q, which is no time", value)
	}
	return t, nil
}

// after returns this client's reading of the clock: the time of the tick, and what has
// passed since the client received it, at most room.
func (t tick) after(now time.Time) locktable.Instant {
	passed := min(t.room, now.Sub(t.at))
	return t.is + max(1, locktable.Instant(passed/time.Microsecond))
}

// lead returns the time by which the reading that follows from this tick is ahead of
// another tick.
func (t tick) lead(of tick, now time.Time) time.Duration { return of.is.Until(t.is) + now.Sub(t.at) }

// A clock is a client's view of the clock that all clients of a prefix share. The client
// computes its readings and its ticks from it. docs/internals/etcd-clock.md says why it
// can be trusted.
type clock struct {
	changed chan struct{} // has one if the loop has to look again

	mu     sync.Mutex // protects all below
	cur    tick
	known  bool
	wrote  string        // the last tick that this client wanted to write
	used   time.Time     // when a step was computed
	active time.Time     // when this client last received an active tick
	called time.Time     // when another client asked for a tick; zero after the next tick
	heard  chan struct{} // closed at the next tick
	slack  float64       // 0 to 1, at random, so that clients do not all tick at once
	trip   time.Duration // how long an answer takes, about
}

func newClock() *clock {
	return &clock{changed: make(chan struct{}, 1), heard: make(chan struct{}), slack: mathrand.Float64()}
}

// window is the time of the clock for a step that is computed now: the last tick, and
// what has passed since. A lease that the step begins lasts until the window's end and
// then its TTL. So it lasts its whole TTL under whichever tick the step takes effect, see
// latest: the tick after that is at most maxTickStep later, and a reading leads it by at
// most maxReadingLead.
func (c *clock) window(now time.Time) (w optimistic.Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return w, false
	}
	c.used = now
	from := c.cur.after(now)
	return optimistic.Window{From: from, To: from.Add(c.widthLocked() + maxTickStep + maxReadingLead), Day: locktable.At(now)}, true
}

// latest is the time of the latest tick under which a step may take effect.
func latest(w optimistic.Window) locktable.Instant {
	return max(w.From, w.To.Add(-maxTickStep-maxReadingLead))
}

// widthLocked returns the longest time after this client's reading at which a step may
// take effect. It is 0 unless the client is so far away that its requests mostly find a
// later tick than it has received.
func (c *clock) widthLocked() time.Duration {
	if c.trip < distantTrip {
		return 0
	}
	return min(2*c.trip, maxWidth)
}

// noteTrip notes how long an answer took.
func (c *clock) noteTrip(trip time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trip = cmp.Or(c.trip, trip)
	c.trip += (trip - c.trip) / 4
}

// tickForSteps returns the tick under which steps take effect whose times are between
// first and last. ticks means that their request has to write a new tick first. ok is
// false if the last tick is after first, or the reading is before last. A client that was
// behind has then written a tick, and a lease that the step found expired may still last
// under that tick.
//
// The client that keeps the clock writes a due tick together with a step, which saves a
// request.
func (c *clock) tickForSteps(first, last locktable.Instant, now time.Time) (t tick, ticks, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || first < c.cur.is || last > c.cur.after(now) {
		return t, false, false
	}
	fitsNextTick := first < c.cur.is.Add(c.cur.room)
	if width := c.widthLocked(); width > 0 { // the next tick is on its way
		fitsNextTick = fitsNextTick || now.Sub(c.cur.at) < maxTickStep+width
	}
	carries := c.cur.room <= maxTickStep && fitsNextTick
	due := c.cur.own && now.Sub(c.cur.at) >= tickInterval
	return c.cur, !carries || due, true
}

// learn takes a tick that this client has just received. The reading goes on as before,
// but is set to no less than the tick, and to no more than maxReadingLead after it. If
// this client has missed the tick before it, learn sets the reading to the tick itself.
// The writer's reading may already have been maxReadingLead ahead of the missed tick, and
// a second lead on top of that is too much.
func (c *clock) learn(t tick) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && t.rev <= c.cur.rev {
		return
	}
	now := time.Now()
	if t.at = now; c.known && t.old == c.cur.id {
		t.at = now.Add(-min(maxReadingLead, max(0, c.cur.lead(t, now))))
	}
	t.own = t.value == c.wrote
	c.cur, c.known = t, true
	if t.room <= maxTickStep {
		c.active = now
	}
	c.called = time.Time{}
	close(c.heard)
	c.heard = make(chan struct{})
	c.wakeLoop()
}

// next makes a tick that this client is to write after another one.
func (c *clock) next(old tick, is locktable.Instant, room time.Duration) tick {
	t := newTick(old, is, room)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote = t.value
	return t
}

// wakeLoop makes the loop look again.
func (c *clock) wakeLoop() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// call notes that another client asks for a tick, if this client knows how much time has
// passed since the last one.
func (c *clock) call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && !c.cur.read {
		c.called = time.Now()
		c.wakeLoop()
	}
}

// resting returns a channel that is closed at the next tick, and whether the clock is at
// rest.
func (c *clock) resting() (next <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard, c.known && c.cur.room > maxTickStep
}

// older notes that at least by has passed since the tick with the revision rev was
// written. A second call for the same timer does no harm.
func (c *clock) older(rev int64, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(-by); c.known && c.cur.rev == rev && at.Before(c.cur.at) {
		c.cur.at = at
	}
}

// forget makes this client read the clock again, for example because it may be another
// cluster's.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}

func (c *clock) current() (tick, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur, c.known
}

// due returns when this client writes the next tick if no other client does, and with
// which room. The client that wrote the last tick goes on; the others take over if it
// does not.
func (c *clock) due() (at time.Time, room time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return at, 0, false
	}
	after := tickInterval
	if c.cur.room > maxTickStep {
		after = idleTickInterval
		if time.Since(c.active) > driver.MaxRequest {
			after = longIdleTickInterval
		}
	}
	switch {
	case !c.cur.own:
		after += after/3 + time.Duration(c.slack*float64(after)*0.3)
	case c.cur.room <= maxTickStep:
		after += tickGrace
	}
	at, room = c.cur.at.Add(after), maxRestStep
	if !c.called.IsZero() {
		at = c.called
		if !c.cur.own {
			at = at.Add(tickReplyTimeout/20 + time.Duration(c.slack*float64(tickReplyTimeout/5)))
		}
	}
	if time.Since(c.used) < restAfter {
		room = maxTickStep // it is in use
	}
	return at, room, true
}

// runClock keeps the clock going, while the client is open.
func (s *store) runClock() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-s.clock.changed:
		case <-timer.C:
		}
		at, _, ok := s.clock.due()
		if !ok {
			if s.readClock(s.life) != nil {
				timer.Reset(idleTickInterval)
			}
			continue
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			continue
		}
		_, room, _ := s.clock.due() // it may be in use by now
		if s.tick(s.life, room) != nil {
			timer.Reset(idleTickInterval)
		}
	}
}

// tick writes a tick, unless another client has.
func (s *store) tick(ctx context.Context, room time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, ok := s.clock.current()
	if !ok {
		return s.readClock(ctx)
	}
	sent := s.seen.Load()
	next := s.clock.next(t, t.after(time.Now()), room)
	r, err := s.txn(ctx, []clientv3.Cmp{s.lastTickIs(t)}, []clientv3.Op{s.put(next)}, []clientv3.Op{s.getClock()})
	switch {
	case err != nil:
		return err
	case r.Succeeded:
		return s.learnWritten(r, next, sent)
	}
	return s.learnFrom(r, sent)
}

func (s *store) learnWritten(r *clientv3.TxnResponse, t tick, sent int64) error {
	if err := s.check(r.Header, sent); err != nil {
		return err
	}
	t.rev = r.Header.Revision
	s.clock.learn(t)
	return nil
}

func (s *store) lastTickIs(t tick) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.clockKey()), "=", t.value)
}

// lastTickIsLaterUpTo is the condition that the last tick is t, or an active tick after
// it and no later than last. A tick before t comes from a restored snapshot.
func (s *store) lastTickIsLaterUpTo(t tick, last locktable.Instant) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(s.clockKey()), ">", tickPrefix(t.is, t.room)),
		clientv3.Compare(clientv3.Value(s.clockKey()), "<", tickPrefix(last+1, maxTickStep)),
	}
}

func (s *store) put(t tick) clientv3.Op { return clientv3.OpPut(s.clockKey(), t.value) }

func (s *store) getClock() clientv3.Op { return clientv3.OpGet(s.clockKey()) }

// learnFrom learns the tick from an answer whose last part is the clock's key.
func (s *store) learnFrom(r *clientv3.TxnResponse, sent int64) error {
	if err := s.check(r.Header, sent); err != nil {
		return err
	}
	kvs := r.Responses[len(r.Responses)-1].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return errNoClock
	}
	t, err := parseTick(string(kvs[0].GetValue()), kvs[0].GetModRevision())
	if err != nil {
		return permanent(err, "delete it while no lock is held, and all keys that begin with "+strconv.Quote(s.prefix+"//"))
	}
	t.read = true
	s.clock.learn(t)
	return nil
}

var errNoClock = errors.New("the clock's key is gone")

// readClock reads the clock. If there is no clock, it begins one, unless there are
// entries: then the key was deleted, and no client knows when the leases end.
func (s *store) readClock(ctx context.Context) error {
	sent := s.seen.Load()
	r, err := s.txn(ctx, nil, append(s.getTimer(), s.getClock()), nil)
	if err != nil {
		return err
	}
	s.others.Store(r.Responses[2].GetResponseRange().GetCount() > 0)
	err = s.learnFrom(r, sent)
	if errors.Is(err, errNoClock) {
		return s.beginClock(ctx)
	}
	if rev, lasts, runs := parseTimer(r); err == nil && !runs {
		s.clock.older(rev, lasts)
	}
	return err
}

// If the clock is at rest, askClock asks the clients that were already open to write a
// tick. A client that has just opened does not know how much has passed since the last
// tick, and a tick of its own would lose that time.
func (s *store) askClock(ctx context.Context) {
	next, resting := s.clock.resting()
	if !resting || !s.others.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tickReplyTimeout)
	defer cancel()
	if _, err := s.client.Put(clientv3.WithRequireLeader(ctx), s.callKey(), ""); err != nil {
		return
	}
	select {
	case <-next:
	case <-ctx.Done():
	}
}

func (s *store) beginClock(ctx context.Context) error {
	sent := s.seen.Load()
	none := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.clockKey()), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(s.entryKey("")), "=", 0).WithPrefix(),
	}
	first := s.clock.next(tick{}, locktable.At(time.Now()), maxTickStep)
	r, err := s.txn(ctx, none, []clientv3.Op{s.put(first)}, []clientv3.Op{s.getClock()})
	switch {
	case err != nil:
		return err
	case r.Succeeded:
		return s.learnWritten(r, first, sent)
	}
	if err = s.learnFrom(r, sent); errors.Is(err, errNoClock) {
		return permanent(
			fmt.Errorf("the key %q is missing, and there are locks: it was deleted", s.clockKey()),
			fmt.Sprintf("stop all that use these locks, then delete all keys that begin with %q", s.prefix+"//"))
	}
	return err
}
