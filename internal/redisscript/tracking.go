package redisscript

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// watchAfter is the age of a lease at which the driver begins to watch it. Most leases
// end earlier, and cost nothing.
const watchAfter = 10 * time.Millisecond

// A tracker notifies holders at once when their name is deleted, flushed or evicted, or a
// client without our scripts overwrites it. A nil *tracker does nothing.
//
// Watching ends with each change, even our own, so the tracker arms the name again after
// a renewal. Watching also ends with the connection, and when another node of a cluster
// gets the name. The server or the client reports both. The holder then renews its lease,
// and so arms the name again.
//
// Most changes come from other clients that hold or wait for the same name. Such a change
// costs the holder no more than arming the name again: at once, or, after a recent
// change, once in watchPace. Arming also reads the state, which shows whether the name is
// gone, or another client's.
type tracker struct {
	watch  func(ctx context.Context, keys []string) []Armed // of the Client
	prefix string
	began  time.Time
	wake   chan struct{} // holds one: wakes run, because firstArm or rearmLater is no longer empty
	hurry  chan struct{} // holds one: rearmNow is no longer empty
	fails  atomic.Bool   // the last attempt to arm failed for some name

	mu         sync.Mutex // protects all below
	byToken    map[driver.Token]watched
	byName     map[string]*watchedName // names that were armed at least once; most leases end before that
	firstArm   []driver.Token          // to be armed, in the order of their grants
	rearmNow   []string                // to be armed again at once, after a change
	rearmLater []string                // to be armed again later, in the order of their times
	awake      bool                    // run looks at firstArm and rearmLater by itself
	swept      time.Duration
}

type watched struct {
	name      string
	armFrom   time.Duration // the earliest time to arm it, since tracker.began; 0 while it is not granted
	until     time.Duration // the latest end of the lease, since tracker.began
	exclusive bool          // it holds all of the name
	listed    bool          // in byName
	armed     bool          // its name was armed, and since then no renewal began, and the holder was not notified
}

type watchedName struct {
	tokens    []driver.Token
	rearmedAt time.Duration // the time of the last arming for a change, since tracker.began; may be ahead
	rearmFrom time.Duration // the earliest time to arm it again, since tracker.began; 0 if it need not be

	// changes counts the changes of the name. asked is the value of changes at the last
	// arming, and known its value at the last arming whose answer was read. A change that
	// is reported while the name is being armed may be later than the state that arming
	// reads.
	changes, asked, known int
}

func newTracker(watch func(ctx context.Context, keys []string) []Armed, prefix string) *tracker {
	return &tracker{
		watch: watch, prefix: prefix, began: time.Now(), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		byName: map[string]*watchedName{}, byToken: map[driver.Token]watched{},
	}
}

// claim notes a claim before the driver sends it alone. Such a claim may queue, and
// another client may pass the name to it before its own answer arrives.
func (w *tracker) claim(c *driver.Claim) {
	if w == nil {
		return
	}
	now := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.byToken[c.Token]
	l.name, l.exclusive, l.armed, l.until = c.Name, c.Weight == driver.Exclusive, false, now+max(c.TTL, c.QueueTTL)
	w.byToken[c.Token] = l
	if now-w.swept > time.Minute {
		w.sweepLocked(now)
	}
}

// granted notes that a claim was granted at now. It may be the first call for this claim.
func (w *tracker) granted(c *driver.Claim, now time.Time) {
	if w == nil {
		return
	}
	passed := now.Sub(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	l, known := w.byToken[c.Token]
	if !known {
		l.name, l.exclusive = c.Name, c.Weight == driver.Exclusive
	}
	w.holdsLocked(c.Token, l, c.TTL, passed)
	if passed-w.swept > time.Minute {
		w.sweepLocked(passed)
	}
}

// sweepLocked forgets leases that ended without a call of forgetToken.
func (w *tracker) sweepLocked(now time.Duration) {
	w.swept = now
	for t, l := range w.byToken {
		if l.until < now {
			w.dropLocked(t)
		}
	}
}

// renewing notes that the next change is our own. The driver calls it before a renewal,
// and held afterwards.
func (w *tracker) renewing(t driver.Token) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l, known := w.byToken[t]; known {
		l.armed = false
		w.byToken[t] = l
	}
}

// held notes that a token holds its lease, for ttl from now. A ttl of 0 is unknown.
func (w *tracker) held(t driver.Token, ttl time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l, known := w.byToken[t]
	if !known {
		return
	}
	w.holdsLocked(t, l, ttl, time.Since(w.began))
}

// holdsLocked notes l for a token that holds its lease.
func (w *tracker) holdsLocked(t driver.Token, l watched, ttl, now time.Duration) {
	if ttl > 0 {
		l.until = now + ttl
	}
	l.armFrom = cmp.Or(l.armFrom, now+watchAfter)
	w.byToken[t] = l
	w.firstArm = append(w.firstArm, t)
	w.rouseLocked()
}

// rouseLocked makes run look at firstArm and rearmLater.
func (w *tracker) rouseLocked() {
	if !w.awake { // waking it for each lease would cost more than the rest
		w.awake = true
		w.wake <- struct{}{} // there is room: run has read the last value before it cleared awake
	}
}

// answered notes the answer to a claim. After an error the outcome is unknown: the claim
// may be granted now, or later from the queue.
func (w *tracker) answered(c *driver.Claim, now time.Time, refused bool, err error) {
	switch {
	case err != nil:
	case !refused:
		w.granted(c, now)
	case !c.Queue:
		w.forgetToken(c.Token)
	}
}

func (w *tracker) forgetToken(t driver.Token) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropLocked(t)
}

func (w *tracker) dropLocked(t driver.Token) {
	l, known := w.byToken[t]
	if !known {
		return
	}
	delete(w.byToken, t)
	if !l.listed {
		return
	}
	n := w.byName[l.name]
	if len(n.tokens) == 1 {
		delete(w.byName, l.name)
	} else if i := slices.Index(n.tokens, t); i >= 0 {
		n.tokens = slices.Delete(n.tokens, i, i+1)
		w.rearmLocked(l.name, n) // the end of t is a change of our own, which the server does not report
	}
}

// watchPace is the shortest time between two armings of a name because of changes.
const watchPace = 500 * time.Millisecond

// rearmLocked schedules a name to be armed again: at once, or, if that happened within
// the last watchPace, later.
func (w *tracker) rearmLocked(name string, n *watchedName) {
	now := time.Since(w.began)
	n.changes++
	switch {
	case n.rearmFrom != 0:
	case now-n.rearmedAt >= watchPace:
		n.rearmFrom, n.rearmedAt = now, now
		w.rearmNow = append(w.rearmNow, name)
		select {
		case w.hurry <- struct{}{}:
		default:
		}
	default:
		n.rearmFrom = now + watchPace
		n.rearmedAt = n.rearmFrom
		w.rearmLater = append(w.rearmLater, name)
		w.rouseLocked()
	}
}

// changed notes that another client has changed the state of a name. If a renewal of each
// of its tokens is under way, changed does nothing, because the answers show whether the
// leases still hold.
func (w *tracker) changed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	if n != nil && slices.ContainsFunc(n.tokens, func(t driver.Token) bool { return w.byToken[t].armed }) {
		w.rearmLocked(name, n)
	}
}

// watchAgain is the pause before a name that could not be armed is tried again. The next
// pauses are longer.
const (
	watchAgain    = 50 * time.Millisecond
	watchAgainMax = 5 * time.Second
)

// run arms what is due, until ctx ends. It calls lost with the tokens whose name is gone,
// or may have been gone for a while.
func (w *tracker) run(ctx context.Context, lost func([]driver.Token)) {
	pace, again := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer pace.Stop()
	defer again.Stop()
	pause, waits := watchAgain, false
	var failed []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hurry:
			w.mu.Lock()
			names := w.rearmNow
			w.rearmNow = nil
			w.mu.Unlock()
			failed = append(failed, w.arm(ctx, names, lost, false)...)
		case <-w.wake:
			pace.Reset(watchAfter)
		case <-pace.C:
			if names := w.takeDue(); names != nil {
				failed = append(failed, w.arm(ctx, names, lost, false)...)
				pace.Reset(watchAfter / 2)
			}
		case <-again.C:
			// The server may be another one, or another client may hold a name. So all
			// names are armed, and then their holders check.
			failed, waits = w.arm(ctx, failed, lost, true), false
		}
		w.fails.Store(len(failed) > 0)
		switch {
		case len(failed) == 0:
			pause = watchAgain
		case !waits:
			again.Reset(backoff.Late(pause))
			pause, waits = min(2*pause, watchAgainMax), true
		}
	}
}

// works reports whether the server reports changes of other clients, as far as the driver
// knows.
func (w *tracker) works() bool { return w != nil && !w.fails.Load() }

// takeDue returns the names whose time has come, which may be none. If no name is
// scheduled, it returns nil, and run sleeps.
func (w *tracker) takeDue() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.firstArm)+len(w.rearmLater) == 0 {
		w.firstArm, w.rearmLater, w.awake = nil, nil, false
		return nil
	}
	now, names, n := time.Since(w.began), []string{}, 0
	for _, t := range w.firstArm {
		l, known := w.byToken[t]
		if known && l.armFrom > now {
			break
		}
		n++
		if !known {
			continue
		}
		if !l.listed {
			l.listed = true
			w.byToken[t] = l
			if w.byName[l.name] == nil {
				w.byName[l.name] = &watchedName{rearmedAt: -watchPace}
			}
			w.byName[l.name].tokens = append(w.byName[l.name].tokens, t)
		}
		names = append(names, l.name)
	}
	w.firstArm, n = w.firstArm[n:], 0
	for _, name := range w.rearmLater {
		if at := w.byName[name]; at != nil && at.rearmFrom > now {
			break
		}
		n++
		names = append(names, name)
	}
	w.rearmLater = w.rearmLater[n:]
	return names
}

// arm makes the server watch names, and returns the names for which it failed. It calls
// lost for names that are gone, for names that were changed and cannot be read, and, if
// doubtful, for all.
func (w *tracker) arm(ctx context.Context, names []string, lost func([]driver.Token), doubtful bool) (failed []string) {
	slices.Sort(names)
	for some := range slices.Chunk(slices.Compact(names), 256) {
		some, states := w.list(some)
		if len(some) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		for i, p := range w.watch(ctx, states) {
			if p.Err != nil {
				failed = append(failed, some[i])
			}
			lost(w.tokensToNotify(some[i], p, doubtful))
		}
		cancel()
	}
	return failed
}

// list marks the tokens of names as armed before the request is sent, because the server
// may report a change before it answers. It returns the names that are still held, and
// their keys.
func (w *tracker) list(names []string) (known, states []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		n := w.byName[name]
		if n == nil {
			continue
		}
		n.rearmFrom, n.asked = 0, n.changes
		for _, t := range n.tokens {
			l := w.byToken[t]
			l.armed = true
			w.byToken[t] = l
		}
		known, states = append(known, name), append(states, key(w.prefix, name))
	}
	return known, states
}

// tokensToNotify returns the tokens of a name that, judging by its state, may hold
// nothing any more. It returns a token once until the name is armed again.
func (w *tracker) tokensToNotify(name string, p Armed, doubtful bool) (tokens []driver.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	if n == nil || p.Err != nil && n.known == n.changes {
		return nil
	}
	n.known = n.asked
	for _, t := range n.tokens {
		if l := w.byToken[t]; l.armed && (doubtful || p.Err != nil || !mayHold(p.State, t, l.exclusive)) {
			l.armed = false
			w.byToken[t] = l
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// storedVersion is the first byte of the stored state of a name.
const storedVersion = 164

// mayHold reports whether a token may hold its lease, by the first fields of the state:
// the token of an exclusive holder, and the number of shared holders, see
// lua/lib/layout.lua.
func mayHold(state string, t driver.Token, exclusive bool) bool {
	const details, shared = 26, 26 + 8 + 8
	if len(state) < details || state[0] != storedVersion {
		return false
	}
	at, more := details, state[1]%4 >= 2
	if more {
		at += 40
	}
	if exclusive {
		at += 8 + 8 + 4
		return state[1]%2 == 1 && len(state) >= at+len(t) && state[at:at+len(t)] == string(t[:])
	}
	return state[1]%2 == 0 && more && len(state) >= at && binary.BigEndian.Uint32([]byte(state[shared:shared+4])) > 0
}

// Invalidated tells the driver that another client has changed these keys; nil means that
// any key may have changed. It does not block.
func (d *Driver) Invalidated(keys []string) {
	if d.tracking == nil || d.closed.Load() {
		return
	}
	if keys == nil {
		d.signals.listeners.Notify(driver.Signal{Kind: driver.SignalLook})
		return
	}
	for _, key := range keys {
		if name, ok := nameOf(d.Prefix, key); ok {
			d.tracking.changed(name)
		}
	}
}

// lost notifies the claimants of these tokens that they may hold nothing any more, and
// have to check.
func (d *Driver) lost(tokens []driver.Token) {
	for _, t := range tokens {
		d.signals.listeners.Notify(driver.Signal{Kind: driver.SignalLost, Token: t})
	}
}
