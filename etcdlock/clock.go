package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	// how much more than what has really passed ticks may count in all. What begins under
	// a tick lasts so much longer as both together.
	span = 300 * time.Millisecond
	slip = 100 * time.Millisecond

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
)

// A tick is what the clock's key says: where the clock stands, and how far the next tick
// may go.
type tick struct {
	is   locktable.Instant
	room time.Duration
	rev  int64     // the revision of the key
	at   time.Time // what passes counts from here, see learn
	own  bool      // it was written here
	read bool      // it was there already: how long ago it was written is not known
}

// after is where the next tick may set the clock at most: our clock says how much has
// passed since we had this one, and it is older than that.
func (t tick) after(now time.Time) locktable.Instant {
	passed := min(t.room, now.Sub(t.at))
	return t.is + max(1, locktable.Instant(passed/time.Microsecond))
}

func (t tick) String() string { return encodeTick(t.is, t.room) }

func encodeTick(is locktable.Instant, room time.Duration) string {
	return fmt.Sprintf("%d %d", is, room.Microseconds())
}

// decodeTick reads what encodeTick wrote.
func decodeTick(s string) (is locktable.Instant, room time.Duration, err error) {
	first, second, ok := strings.Cut(s, " ")
	i, err1 := strconv.ParseInt(first, 10, 64)
	r, err2 := strconv.ParseInt(second, 10, 64)
	if !ok || err1 != nil || err2 != nil || i <= 0 || r <= 0 || r > rest.Microseconds() {
		return 0, 0, fmt.Errorf("the clock's key says %.40q, which is no time", s)
	}
	return locktable.Instant(i), time.Duration(r) * time.Microsecond, nil
}

// A clock is what a client knows of the clock that all clients of a prefix share, and its
// part in keeping it going. The package comment says why it can be trusted.
type clock struct {
	life    context.Context
	changed chan struct{} // has one if the loop is to look again

	mu     sync.Mutex // protects all below
	cur    tick
	known  bool
	given  locktable.Instant // the last that was given to a step under this tick
	floor  locktable.Instant // the last that was given under ticks before it
	used   time.Time         // a step was computed
	active time.Time         // a tick was seen that steps are taken under
	called time.Time         // somebody asked for a tick, and none has come since
	heard  chan struct{}     // closed at the next tick
	slack  float64           // of this client, so that clients do not all tick at once
}

func newClock(life context.Context) *clock {
	return &clock{life: life, changed: make(chan struct{}, 1), heard: make(chan struct{}), slack: rand.Float64()}
}

// window is where the clock stands for a step that is computed now: further than its last
// tick by what has passed since. It goes on until the next tick may have come; or, if
// that is to be written with the step, until the one after that.
func (c *clock) window(now time.Time) (w optimistic.Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return w, false
	}
	c.used = now
	w.From = max(c.cur.after(now), c.floor+1)
	if end := c.cur.is.Add(c.cur.room); c.cur.room <= span && w.From < end {
		c.given = max(c.given, w.From)
		w.To = end.Add(slip)
	} else {
		w.To = w.From.Add(span + slip)
	}
	return w, true
}

// under is the tick under which a step with such a window is taken, and whether it has to
// write one of its own. It is not ok if the window is from before the tick.
func (c *clock) under(from locktable.Instant, now time.Time) (t tick, ticks, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.known, from < c.cur.is, from <= c.floor:
		return t, false, false
	case c.cur.room <= span && from < c.cur.is.Add(c.cur.room):
		return c.cur, false, true
	}
	return c.cur, true, from <= c.cur.after(now)
}

// learn takes a tick that was received now. sent is when it was sent, if that was here:
// then what passes counts from there, but for what the answer took longer than slip.
func (c *clock) learn(is locktable.Instant, room time.Duration, rev int64, sent time.Time, read bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && rev <= c.cur.rev {
		return
	}
	now := time.Now()
	c.floor, c.given = max(c.floor, c.given), 0
	c.cur, c.known = tick{is: is, room: room, rev: rev, at: now, read: read}, true
	if !sent.IsZero() {
		c.cur.at, c.cur.own = sent, true
		if taken := now.Sub(sent); taken > slip {
			c.cur.at = now.Add(-slip)
		}
	}
	if room <= span {
		c.active = now
	}
	c.called = time.Time{}
	close(c.heard)
	c.heard = make(chan struct{})
	c.look()
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

// older notes that the tick that is known was written so much before it was received.
func (c *clock) older(rev int64, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && c.cur.rev == rev {
		c.cur.at = c.cur.at.Add(-by)
	}
}

// forget is for when the clock has to be read again.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor = max(c.floor, c.given)
	c.known, c.given = false, 0
}

// anew is for when it may be another one.
func (c *clock) anew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.given, c.floor = false, 0, 0
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
	after := span / 2 // so that no time is lost if another one has to
	if c.cur.room > span {
		after = beat
		if time.Since(c.active) > driver.MaxRequest {
			after = beatLater
		}
	}
	if !c.cur.own {
		after += after/2 + time.Duration(c.slack*float64(after)*0.4)
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
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, ok := s.clock.current()
	if !ok {
		return s.readClock(ctx)
	}
	now, sent := time.Now(), s.seen.Load()
	is := t.after(now)
	r, err := s.txn(ctx, s.stands(t), []clientv3.Op{clientv3.OpPut(s.clockKey(), encodeTick(is, room))}, []clientv3.Op{s.getClock()})
	switch {
	case err != nil:
		return err
	case r.Succeeded:
		s.clock.learn(is, room, r.Header.Revision, now, false)
		return s.check(r.Header, sent)
	}
	return s.learnFrom(r, sent)
}

// stands is the condition that a tick is the last one. Its revision alone would not do:
// where a snapshot was restored, revisions come again.
func (s *store) stands(t tick) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.clockKey()), "=", t.rev),
		clientv3.Compare(clientv3.Value(s.clockKey()), "=", t.String()),
	}
}

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
	is, room, err := decodeTick(string(kvs[0].GetValue()))
	if err != nil {
		return permanent(err, "delete it while no lock is held, and all keys that begin with "+strconv.Quote(s.prefix+"//"))
	}
	s.clock.learn(is, room, kvs[0].GetModRevision(), time.Time{}, true)
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
	now := time.Now()
	is := locktable.At(now)
	r, err := s.txn(ctx, none, []clientv3.Op{clientv3.OpPut(s.clockKey(), encodeTick(is, span))}, []clientv3.Op{s.getClock()})
	switch {
	case err != nil:
		return err
	case r.Succeeded:
		s.clock.learn(is, span, r.Header.Revision, now, false)
		return s.check(r.Header, sent)
	}
	if err = s.learnFrom(r, sent); errors.Is(err, errNoClock) {
		return permanent(
			fmt.Errorf("the key %q is missing, and there are locks: somebody deleted it", s.clockKey()),
			fmt.Sprintf("stop all that use these locks, then delete all keys that begin with %q", s.prefix+"//"))
	}
	return err
}
