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
	// span is how far the tick after one that steps are taken under may go, and slip is
	// how far ahead of a tick a client may be that has just received it. What begins
	// under a tick lasts so much longer as both together. With less of them time would be
	// lost, wherever a tick takes longer than slip to come.
	span = 250 * time.Millisecond
	slip = 100 * time.Millisecond

	// period is how often the clock ticks while it is in use: often enough that no time
	// is lost where another client has to take over, see due.
	period = 150 * time.Millisecond

	// grace is how long the loop leaves a tick to a step that can write it on its way.
	grace = 20 * time.Millisecond

	// rest is how far the one after a tick may go under which no steps are taken.
	rest = time.Hour

	// lull is how long nobody here has used the clock when it goes to rest.
	lull = 500 * time.Millisecond

	// answer is how long one that comes waits for a tick of somebody else.
	answer = 150 * time.Millisecond

	// beat is how often the clock ticks while nobody needs it, and beatLater when nobody
	// has for longer than a request can last.
	beat      = time.Second
	beatLater = 10 * time.Second

	// distant is how long an answer takes where most requests would find a tick that has
	// come meanwhile; widest bounds how much later than its reading a step may be taken,
	// see width.
	distant = 50 * time.Millisecond
	widest  = 2 * time.Second
)

// A tick is what the clock's key says: where the clock stands, and how far the next tick
// may go.
type tick struct {
	is    locktable.Instant
	room  time.Duration
	value string    // of the key; no two ticks have the same
	id    string    // the part of it that is no other tick's
	old   string    // the id of the tick that it follows
	rev   int64     // the revision of the key
	at    time.Time // what passes counts from here, see learn
	own   bool      // it was written here
	read  bool      // it was there already: how long ago it was written is not known
}

// newTick is one that is to be written after another one. It has an id that tells it from
// all others: where a snapshot was restored, the same revision comes again, and maybe the
// same time.
func newTick(old tick, is locktable.Instant, room time.Duration) tick {
	t := tick{is: is, room: room, id: rand.Text()[:8], old: old.id}
	t.value = fmt.Sprintf("%s %d %s %s", tickPrefix(is, room), room.Microseconds(), t.id, cmp.Or(t.old, "-"))
	return t
}

// tickPrefix is what the key says first: ticks that steps are taken under are in the
// order of their times, and before all others.
func tickPrefix(is locktable.Instant, room time.Duration) string {
	if room <= span {
		return fmt.Sprintf("a%020d", is)
	}
	return fmt.Sprintf("z%020d", is)
}

// parseTick reads one that was written.
func parseTick(value string, rev int64) (tick, error) {
	t := tick{value: value, rev: rev}
	fields := strings.Fields(value)
	if len(fields) != 4 {
		return t, fmt.Errorf("the clock's key says %.40q, which is no time", value)
	}
	is, err1 := strconv.ParseInt(fields[0][1:], 10, 64)
	room, err2 := strconv.ParseInt(fields[1], 10, 64)
	t.is, t.room, t.id, t.old = locktable.Instant(is), time.Duration(room)*time.Microsecond, fields[2], fields[3]
	if err1 != nil || err2 != nil || is <= 0 || room <= 0 || t.room > rest || fields[0] != tickPrefix(t.is, t.room) {
		return t, fmt.Errorf("the clock's key says %.40q, which is no time", value)
	}
	return t, nil
}

// after is where the next tick may set the clock at most: our clock says how much has
// passed since we had this one.
func (t tick) after(now time.Time) locktable.Instant {
	passed := min(t.room, now.Sub(t.at))
	return t.is + max(1, locktable.Instant(passed/time.Microsecond))
}

// lead is how far ahead of another tick the clock would be if there was none.
func (t tick) lead(of tick, now time.Time) time.Duration { return of.is.Until(t.is) + now.Sub(t.at) }

// A clock is what a client knows of the clock that all clients of a prefix share, and its
// part in keeping it going. The package comment says why it can be trusted.
type clock struct {
	changed chan struct{} // has one if the loop is to look again

	mu     sync.Mutex // protects all below
	cur    tick
	known  bool
	wrote  string        // the last tick that was to be written here
	used   time.Time     // a step was computed
	active time.Time     // a tick was seen that steps are taken under
	called time.Time     // somebody asked for a tick, and none has come since
	heard  chan struct{} // closed at the next tick
	slack  float64       // of this client, so that clients do not all tick at once
	trip   time.Duration // of an answer, about
}

func newClock() *clock {
	return &clock{changed: make(chan struct{}, 1), heard: make(chan struct{}), slack: mathrand.Float64()}
}

// window is where the clock stands for a step that is computed now: further than its last
// tick by what has passed since. What begins with the step lasts until the window's end
// and then its TTL. That is enough for every tick which the step may be taken under, see
// latest: the next one goes no more than span further.
func (c *clock) window(now time.Time) (w optimistic.Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return w, false
	}
	c.used = now
	from := c.cur.after(now)
	return optimistic.Window{From: from, To: from.Add(c.widthLocked() + span + slip), Day: locktable.At(now)}, true
}

// latest is the latest tick that a step may be taken under.
func latest(w optimistic.Window) locktable.Instant { return max(w.From, w.To.Add(-span-slip)) }

// widthLocked is how much later than its reading a step may be taken: not at all, unless
// this client is so far away that there is mostly a tick of which it has not heard.
func (c *clock) widthLocked() time.Duration {
	if c.trip < distant {
		return 0
	}
	return min(2*c.trip, widest)
}

// took notes how long an answer took.
func (c *clock) took(trip time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trip = cmp.Or(c.trip, trip)
	c.trip += (trip - c.trip) / 4
}

// under is the tick under which steps are taken that were computed between two times, and
// whether they have to write one of their own, at the first. It is not ok if the clock
// has gone further than that, or if it does not stand at the last any more: for a tick
// has come since, by one who was behind, and what began under that was not to be over
// yet.
//
// Whoever keeps the clock writes a tick that is due with a step, if there is one: that
// saves a request.
func (c *clock) under(first, last locktable.Instant, now time.Time) (t tick, ticks, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || first < c.cur.is || last > c.cur.after(now) {
		return t, false, false
	}
	fresh := first < c.cur.is.Add(c.cur.room)
	if width := c.widthLocked(); width > 0 { // the next tick is on its way
		fresh = fresh || now.Sub(c.cur.at) < span+width
	}
	carries := c.cur.room <= span && fresh
	due := c.cur.own && now.Sub(c.cur.at) >= period
	return c.cur, !carries || due, true
}

// learn takes a tick that was received now. The clock goes on as before, but is put to no
// less than what the tick says, and to no more than slip ahead of it. It is put to just
// what the tick says if that does not follow the one that is known: it may be slip ahead
// of one that was missed, and two slips ahead of that is too much.
func (c *clock) learn(t tick) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && t.rev <= c.cur.rev {
		return
	}
	now := time.Now()
	if t.at = now; c.known && t.old == c.cur.id {
		t.at = now.Add(-min(slip, max(0, c.cur.lead(t, now))))
	}
	t.own = t.value == c.wrote
	c.cur, c.known = t, true
	if t.room <= span {
		c.active = now
	}
	c.called = time.Time{}
	close(c.heard)
	c.heard = make(chan struct{})
	c.look()
}

// next is a tick that is to be written here, after another one.
func (c *clock) next(old tick, is locktable.Instant, room time.Duration) tick {
	t := newTick(old, is, room)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote = t.value
	return t
}

// look makes the loop look again.
func (c *clock) look() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// call notes that somebody asks for a tick, if this client knows how much has passed
// since the last one.
func (c *clock) call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && !c.cur.read {
		c.called = time.Now()
		c.look()
	}
}

// resting returns what is closed at the next tick, if the clock is at rest.
func (c *clock) resting() (next <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard, c.known && c.cur.room > span
}

// older notes that the tick with that revision was written at least so long ago. It may
// be told so more than once, each time by another reading of the same glass.
func (c *clock) older(rev int64, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(-by); c.known && c.cur.rev == rev && at.Before(c.cur.at) {
		c.cur.at = at
	}
}

// forget is for when the clock has to be read again, or may be another one.
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

// due is when this client writes the next tick, if nobody else does, and what kind. The
// one that wrote the last one goes on; the others come in if it does not.
func (c *clock) due() (at time.Time, room time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return at, 0, false
	}
	after := period
	if c.cur.room > span {
		after = beat
		if time.Since(c.active) > driver.MaxRequest {
			after = beatLater
		}
	}
	switch {
	case !c.cur.own:
		after += after/3 + time.Duration(c.slack*float64(after)*0.3)
	case c.cur.room <= span:
		after += grace
	}
	at, room = c.cur.at.Add(after), rest
	if !c.called.IsZero() {
		at = c.called
		if !c.cur.own {
			at = at.Add(answer/20 + time.Duration(c.slack*float64(answer/5)))
		}
	}
	if time.Since(c.used) < lull {
		room = span // it is in use
	}
	return at, room, true
}

// keep keeps the clock going, while the client is open.
func (s *store) keep() {
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
				timer.Reset(beat)
			}
			continue
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			continue
		}
		_, room, _ := s.clock.due() // it may be in use since
		if s.tick(s.life, room) != nil {
			timer.Reset(beat)
		}
	}
}

// tick writes a tick, unless somebody else has.
func (s *store) tick(ctx context.Context, room time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, ok := s.clock.current()
	if !ok {
		return s.readClock(ctx)
	}
	sent := s.seen.Load()
	next := s.clock.next(t, t.after(time.Now()), room)
	r, err := s.txn(ctx, []clientv3.Cmp{s.stands(t)}, []clientv3.Op{s.put(next)}, []clientv3.Op{s.getClock()})
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

func (s *store) stands(t tick) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.clockKey()), "=", t.value)
}

// standsUntil is the condition that the last tick is that one, or one after it that is no
// later than a time, and that steps are taken under it. One that is earlier is of a
// snapshot that was restored.
func (s *store) standsUntil(t tick, last locktable.Instant) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(s.clockKey()), ">", tickPrefix(t.is, t.room)),
		clientv3.Compare(clientv3.Value(s.clockKey()), "<", tickPrefix(last+1, span)),
	}
}

func (s *store) put(t tick) clientv3.Op { return clientv3.OpPut(s.clockKey(), t.value) }

func (s *store) getClock() clientv3.Op { return clientv3.OpGet(s.clockKey()) }

// learnFrom learns where the clock stands from an answer whose last part is its key.
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

// readClock asks where the clock stands. If there is none it begins, unless there are
// entries: then somebody deleted it, and nobody knows when they end.
func (s *store) readClock(ctx context.Context) error {
	sent := s.seen.Load()
	r, err := s.txn(ctx, nil, append(s.glance(), s.getClock()), nil)
	if err != nil {
		return err
	}
	s.others.Store(r.Responses[2].GetResponseRange().GetCount() > 0)
	err = s.learnFrom(r, sent)
	if errors.Is(err, errNoClock) {
		return s.beginClock(ctx)
	}
	if rev, lasts, runs := glassIn(r); err == nil && !runs {
		s.clock.older(rev, lasts)
	}
	return err
}

// askClock asks those that have been there for a while to tick, if the clock is at rest:
// one that has just come does not know how much has passed since the last tick, and with
// one of its own that would be lost.
func (s *store) askClock(ctx context.Context) {
	next, resting := s.clock.resting()
	if !resting || !s.others.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
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
	first := s.clock.next(tick{}, locktable.At(time.Now()), span)
	r, err := s.txn(ctx, none, []clientv3.Op{s.put(first)}, []clientv3.Op{s.getClock()})
	switch {
	case err != nil:
		return err
	case r.Succeeded:
		return s.learnWritten(r, first, sent)
	}
	if err = s.learnFrom(r, sent); errors.Is(err, errNoClock) {
		return permanent(
			fmt.Errorf("the key %q is missing, and there are locks: somebody deleted it", s.clockKey()),
			fmt.Sprintf("stop all that use these locks, then delete all keys that begin with %q", s.prefix+"//"))
	}
	return err
}
