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
	"github.com/pawl-go/pawl/locktable/swap"
)

const (
	// Steps take effect only under an active tick. maxTickAdvance is the largest advance
	// of the clock from an active tick to the next tick. maxReceiverSkew is the largest
	// lead of a client's reading over the tick that the client has just received. Each
	// lease lasts longer by both. With smaller values the clock would lose time whenever
	// a tick takes longer than maxReceiverSkew to arrive.
	maxTickAdvance  = 250 * time.Millisecond
	maxReceiverSkew = 100 * time.Millisecond

	// tickInterval is the time between two ticks while the clock is in use. If another
	// client has to write the next tick, this takes less than maxTickAdvance, see due, so
	// the clock loses no time.
	tickInterval = 150 * time.Millisecond

	// piggybackDelay is the delay after which runClock writes a due tick. Meanwhile a
	// step can write the tick in its own request.
	piggybackDelay = 20 * time.Millisecond

	// idleAdvance is the largest advance of the clock from an inactive tick to the next.
	idleAdvance = time.Hour

	// idleAfter is the time without a step after which a client lets the clock become
	// idle.
	idleAfter = 500 * time.Millisecond

	// peerTickTimeout is the time for which a newly opened client waits for a tick of
	// another client.
	peerTickTimeout = 150 * time.Millisecond

	// idleTickInterval is the time between two ticks while no client uses the clock.
	// longIdleTickInterval replaces it once no request from before can be under way.
	idleTickInterval     = time.Second
	longIdleTickInterval = 10 * time.Second

	// If round trips take slowRoundTrip or longer, most requests of a client arrive under
	// a later tick than the client has received. maxWindow is the largest width of a
	// window, see widthLocked.
	slowRoundTrip = 50 * time.Millisecond
	maxWindow     = 2 * time.Second
)

// A tick is the content of the clock's key: a time, and the room, which is the largest
// advance to the next tick. A tick whose room is at most maxTickAdvance is active: steps
// can take effect under it.
type tick struct {
	instant   locktable.Instant
	room      time.Duration
	value     string    // the text in the key, different for each tick
	id        string    // the unique part of value
	oldID     string    // the id of the previous tick
	rev       int64     // the revision of the key
	localTime time.Time // when this client's reading was equal to the tick, see learn
	isOwn     bool      // this client has written the tick
	wasRead   bool      // this client has read the tick, so it does not know the age of the tick
}

// newTick makes the tick after old. Its id is unique, because revisions repeat if an
// operator restores a snapshot, and times may repeat, too.
func newTick(old tick, instant locktable.Instant, room time.Duration) tick {
	t := tick{instant: instant, room: room, id: rand.Text()[:8], oldID: old.id}
	t.value = fmt.Sprintf("%s %d %s %s", tickPrefix(instant, room), room.Microseconds(), t.id, cmp.Or(t.oldID, "-"))
	return t
}

// tickPrefix returns the beginning of a tick's text. Active ticks sort by time, and
// before all inactive ticks.
func tickPrefix(instant locktable.Instant, room time.Duration) string {
	if room <= maxTickAdvance {
		return fmt.Sprintf("a%020d", instant)
	}
	return fmt.Sprintf("z%020d", instant)
}

func parseTick(value string, rev int64) (tick, error) {
	t := tick{value: value, rev: rev}
	if fields := strings.Fields(value); len(fields) == 4 {
		instant, err1 := strconv.ParseInt(fields[0][1:], 10, 64)
		room, err2 := strconv.ParseInt(fields[1], 10, 64)
		t.instant, t.room, t.id, t.oldID = locktable.Instant(instant), time.Duration(room)*time.Microsecond, fields[2], fields[3]
		if err1 == nil && err2 == nil && instant > 0 && room > 0 && t.room <= idleAdvance && fields[0] == tickPrefix(t.instant, t.room) {
			return t, nil
		}
	}
	return t, fmt.Errorf("the clock's key has the value %.40q, which is no time", value)
}

// after returns this client's reading of the clock: the time of the tick plus the time
// since t.localTime, up to t.room.
func (t tick) after(now time.Time) locktable.Instant {
	passed := min(t.room, now.Sub(t.localTime))
	return t.instant + max(1, locktable.Instant(passed/time.Microsecond))
}

// A clock is a client's view of the clock that all clients of a prefix share. The client
// computes its readings and its ticks from this view. docs/internals/etcd-clock.md says
// why clients can trust the shared clock.
type clock struct {
	changed chan struct{} // has a value if runClock has to call due again

	mu            sync.Mutex // protects the fields below
	cur           tick
	known         bool
	lastAttempt   string        // the text of the last tick that this client tried to write
	usedAt        time.Time     // when this client last called window
	activeAt      time.Time     // when this client last received an active tick
	tickRequested time.Time     // when another client asked for a tick; zero after the next tick
	nextTick      chan struct{} // closed at the next tick
	jitter        float64       // a random number, 0 to 1, so that clients write a due tick at different times
	roundTrip     time.Duration // the average round-trip time
}

func newClock() *clock {
	return &clock{changed: make(chan struct{}, 1), nextTick: make(chan struct{}), jitter: mathrand.Float64()}
}

// window returns the window of a step that is computed now. It begins with this client's
// reading. A lease of the step ends one TTL after the window. So it lasts its whole TTL
// even if the step takes effect under the latest possible tick, see latest: the next tick
// is at most maxTickAdvance later, and a reading leads a tick by at most maxReceiverSkew.
func (c *clock) window(now time.Time) (w swap.Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return w, false
	}
	c.usedAt = now
	from := c.cur.after(now)
	return swap.Window{From: from, To: from.Add(c.widthLocked() + maxTickAdvance + maxReceiverSkew), WallClock: locktable.At(now)}, true
}

// latest returns the time of the latest tick under which a step may take effect.
func latest(w swap.Window) locktable.Instant {
	return max(w.From, w.To.Add(-maxTickAdvance-maxReceiverSkew))
}

// widthLocked returns the longest time after this client's reading at which a step may
// take effect. It is 0 unless the client is so far away that most of its requests arrive
// under a later tick than it has received.
func (c *clock) widthLocked() time.Duration {
	if c.roundTrip < slowRoundTrip {
		return 0
	}
	return min(2*c.roundTrip, maxWindow)
}

// recordRoundTrip updates the average round-trip time.
func (c *clock) recordRoundTrip(trip time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roundTrip = cmp.Or(c.roundTrip, trip)
	c.roundTrip += (trip - c.roundTrip) / 4
}

// tickForSteps returns the tick under which steps with times between first and last take
// effect. If addTick is true, the request must also write a new tick. If ok is false, the
// last tick is after first, or the reading is before last. In the latter case, another
// client with a slower clock has written a tick: a lease that a step saw as expired may
// still last.
//
// To save a request, the client that wrote the last tick adds a due tick to a step.
func (c *clock) tickForSteps(first, last locktable.Instant, now time.Time) (t tick, addTick, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || first < c.cur.instant || last > c.cur.after(now) {
		return t, false, false
	}
	fitsNextTick := first < c.cur.instant.Add(c.cur.room)
	if width := c.widthLocked(); width > 0 { // the next tick may already have been sent
		fitsNextTick = fitsNextTick || now.Sub(c.cur.localTime) < maxTickAdvance+width
	}
	canCarrySteps := c.cur.room <= maxTickAdvance && fitsNextTick
	due := c.cur.isOwn && now.Sub(c.cur.localTime) >= tickInterval
	return c.cur, !canCarrySteps || due, true
}

// learn takes a tick that this client has just received. The reading continues, but learn
// limits it to the time from the tick to maxReceiverSkew after the tick. If this client
// has missed the tick before t, learn sets the reading to t. The writer of t may already
// have been maxReceiverSkew ahead of the missed tick, and the two leads must not add up.
func (c *clock) learn(t tick) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && t.rev <= c.cur.rev {
		return
	}
	now := time.Now()
	if t.localTime = now; c.known && t.oldID == c.cur.id {
		t.localTime = now.Add(-min(maxReceiverSkew, max(0, t.instant.Until(c.cur.instant)+now.Sub(c.cur.localTime))))
	}
	t.isOwn = t.value == c.lastAttempt
	c.cur, c.known = t, true
	if t.room <= maxTickAdvance {
		c.activeAt = now
	}
	c.tickRequested = time.Time{}
	close(c.nextTick)
	c.nextTick = make(chan struct{})
	c.wakeLoop()
}

// next makes the tick that this client writes after old.
func (c *clock) next(old tick, instant locktable.Instant, room time.Duration) tick {
	t := newTick(old, instant, room)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastAttempt = t.value
	return t
}

// wakeLoop makes runClock call due again.
func (c *clock) wakeLoop() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// noteTickRequest records that another client asks for a tick, if this client knows the
// age of the last tick.
func (c *clock) noteTickRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && !c.cur.wasRead {
		c.tickRequested = time.Now()
		c.wakeLoop()
	}
}

// idle returns a channel that is closed at the next tick, and reports whether the clock
// is idle.
func (c *clock) idle() (next <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextTick, c.known && c.cur.room > maxTickAdvance
}

// raiseAge records that the tick with the revision rev is at least as old as age. A
// second call for the same timer has no effect.
func (c *clock) raiseAge(rev int64, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(-age); c.known && c.cur.rev == rev && at.Before(c.cur.localTime) {
		c.cur.localTime = at
	}
}

// invalidate makes this client read the clock again, for example because another cluster
// may have answered.
func (c *clock) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}

func (c *clock) current() (tick, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur, c.known
}

// due returns when this client writes the next tick if no other client does, and the room
// of that tick. The client that wrote the last tick is due first, and the others a little
// later.
func (c *clock) due() (at time.Time, room time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return at, 0, false
	}
	after := tickInterval
	if c.cur.room > maxTickAdvance {
		after = idleTickInterval
		if time.Since(c.activeAt) > driver.MaxRequest {
			after = longIdleTickInterval
		}
	}
	switch {
	case !c.cur.isOwn:
		after += after/3 + time.Duration(c.jitter*float64(after)*0.3)
	case c.cur.room <= maxTickAdvance:
		after += piggybackDelay
	}
	at, room = c.cur.localTime.Add(after), idleAdvance
	if !c.tickRequested.IsZero() {
		at = c.tickRequested
		if !c.cur.isOwn {
			at = at.Add(peerTickTimeout/20 + time.Duration(c.jitter*float64(peerTickTimeout/5)))
		}
	}
	if time.Since(c.usedAt) < idleAfter {
		room = maxTickAdvance // the clock is in use
	}
	return at, room, true
}

// runClock writes the due ticks, until the client is closed.
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
		at, room, ok := s.clock.due()
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
		if s.tick(s.life, room) != nil {
			timer.Reset(idleTickInterval)
		}
	}
}

// tick writes the next tick, unless another client has written one.
func (s *store) tick(ctx context.Context, room time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	t, ok := s.clock.current()
	if !ok {
		return s.readClock(ctx)
	}
	next := s.clock.next(t, t.after(time.Now()), room)
	_, err := s.txnAtTick(ctx, []clientv3.Cmp{s.lastTickIs(t)}, nil, nil, next)
	return err
}

// txnAtTick runs a transaction with conditions on the last tick. If they are true, it
// also writes the next tick, unless that is zero. Otherwise it learns the last tick. If
// the returned answer is nil, the outcome is unknown.
func (s *store) txnAtTick(ctx context.Context, conditions []clientv3.Cmp, then, otherwise []clientv3.Op, next tick) (*clientv3.TxnResponse, error) {
	if next.value != "" {
		then = append(then, clientv3.OpPut(s.clockKey(), next.value))
	}
	r, err := s.txn(ctx, conditions, then, append(otherwise, s.getClock()))
	switch {
	case err != nil:
		return nil, err
	case !r.Succeeded:
		if err = s.learnFrom(r); err != nil {
			s.clock.invalidate()
		}
	case next.value != "":
		next.rev = r.Header.Revision
		s.clock.learn(next)
	}
	return r, err
}

func (s *store) lastTickIs(t tick) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.clockKey()), "=", t.value)
}

// lastTickIsLaterUpTo returns the condition that the last tick is t, or an active tick
// after t and no later than last. Only a restored snapshot can bring back a tick before
// t.
func (s *store) lastTickIsLaterUpTo(t tick, last locktable.Instant) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(s.clockKey()), ">", tickPrefix(t.instant, t.room)),
		clientv3.Compare(clientv3.Value(s.clockKey()), "<", tickPrefix(last+1, maxTickAdvance)),
	}
}

func (s *store) getClock() clientv3.Op { return clientv3.OpGet(s.clockKey()) }

// learnFrom learns the tick from an answer whose last part is the clock's key.
func (s *store) learnFrom(r *clientv3.TxnResponse) error {
	kvs := r.Responses[len(r.Responses)-1].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return errNoClock
	}
	t, err := parseTick(string(kvs[0].GetValue()), kvs[0].GetModRevision())
	if err != nil {
		return permanent(err, "delete it while no lock is held, and all keys that begin with "+strconv.Quote(s.prefix+"//"))
	}
	t.wasRead = true
	s.clock.learn(t)
	return nil
}

var errNoClock = errors.New("the clock's key is gone")

// readClock reads the clock, and begins one if there is neither a clock nor an entry. If
// there are entries but no clock, an operator has deleted the clock, and readClock fails,
// because the ends of the leases are unknown.
func (s *store) readClock(ctx context.Context) error {
	r, err := s.txn(ctx, nil, append(s.getTimer(), s.getClock()), nil)
	if err != nil {
		return err
	}
	s.hasPeers.Store(r.Responses[2].GetResponseRange().GetCount() > 0)
	err = s.learnFrom(r)
	if errors.Is(err, errNoClock) {
		return s.beginClock(ctx)
	}
	if rev, length, runs := parseTimer(r); err == nil && !runs {
		s.clock.raiseAge(rev, length)
	}
	return err
}

// requestTick asks the clients that were already open to write a tick, if the clock is
// idle. A client that has just opened does not know the age of the last tick, so its own
// tick would lose that time.
func (s *store) requestTick(ctx context.Context) {
	next, idle := s.clock.idle()
	if !idle || !s.hasPeers.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peerTickTimeout)
	defer cancel()
	if _, err := s.client.Put(clientv3.WithRequireLeader(ctx), s.tickRequestKey(), ""); err == nil {
		waitFor(ctx, next)
	}
}

func (s *store) beginClock(ctx context.Context) error {
	isEmpty := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.clockKey()), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(s.entryKey("")), "=", 0).WithPrefix(),
	}
	first := s.clock.next(tick{}, locktable.At(time.Now()), maxTickAdvance)
	_, err := s.txnAtTick(ctx, isEmpty, nil, nil, first)
	if errors.Is(err, errNoClock) {
		return permanent(fmt.Errorf("the key %q is missing, and there are locks: it was deleted", s.clockKey()),
			fmt.Sprintf("stop all that use these locks, then delete all keys that begin with %q", s.prefix+"//"))
	}
	return err
}
