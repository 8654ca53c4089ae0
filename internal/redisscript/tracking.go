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

// watchAfter is the age of a lease at which the driver begins to watch its name. Most
// leases end earlier, and so cost nothing.
const watchAfter = 10 * time.Millisecond

// A tracker notifies holders at once when their name is deleted, flushed or evicted, or
// overwritten by another program. It uses Redis' client tracking. To arm a name means to
// ask the server to report its next change. A nil *tracker does nothing.
//
// The server reports one change only, even a change by this driver. So the tracker arms
// the name again after each renewal. It also has to do so after the loss of the
// connection, and when the name moves to another node of a cluster. The server or the
// library reports both; then the holder renews its lease, which arms the name again.
//
// Most changes come from other clients that hold or wait for the same name. After such a
// change, the tracker arms the name again: at once, or once in watchPace if changes are
// frequent. Arming also reads the state of the name, which shows whether the lease may be
// gone.
type tracker struct {
	watch   func(ctx context.Context, keys []string) []WatchReply // of the Client
	prefix  string
	began   time.Time
	pace    *time.Timer   // wakes run to read firstArm
	wakeNow chan struct{} // capacity 1: wakes run, because rearm is no longer empty
	fails   atomic.Bool   // the last attempt to arm failed for some name

	mu       sync.Mutex // protects the fields below
	byToken  map[driver.Token]watched
	byName   map[string]*watchedName // names that were armed; most leases end before that
	firstArm []driver.Token          // to be armed after a grant or a renewal, in that order
	rearm    []string                // to be armed again at once, after a change
	awake    bool                    // pace is set
	swept    time.Duration
}

type watched struct {
	name      string
	armFrom   time.Duration // the earliest time to arm it, since tracker.began; 0 while it is not granted
	until     time.Duration // the latest end of the lease, since tracker.began
	exclusive bool          // the lease is exclusive
	listed    bool          // in byName
	armed     bool          // since the last arming, no renewal began, and the holder was not notified
}

type watchedName struct {
	tokens    []driver.Token
	rearmFrom time.Duration // the time of the last or next arming for a change, since tracker.began
	rearming  bool          // the next arming for a change has not begun

	// changes counts the reported changes of the name. asked is its value when the last
	// arming was sent. known is its value when the last answered arming was sent. If
	// changes is greater than known, the name may have changed after its state was read.
	changes, asked, known int
}

func newTracker(watch func(ctx context.Context, keys []string) []WatchReply, prefix string) *tracker {
	return &tracker{
		watch: watch, prefix: prefix, began: time.Now(), pace: time.NewTimer(time.Hour), wakeNow: make(chan struct{}, 1),
		byName: map[string]*watchedName{}, byToken: map[driver.Token]watched{},
	}
}

// claim adds a claim before the driver sends it alone. Such a claim may queue, and be
// granted by another client's release before its own answer arrives.
func (w *tracker) claim(c *driver.Claim) {
	if w == nil {
		return
	}
	now := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.byToken[c.Token]
	l.name, l.exclusive, l.armed, l.until = c.Name, c.Weight == driver.Exclusive, false, now+max(c.TTL, c.QueueTTL)
	w.storeLocked(c.Token, l, now)
}

// granted records that a claim was granted at now. It may be the first call for this
// claim.
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
}

// storeLocked stores l. Once a minute it forgets the leases that ended without a call of
// forgetToken.
func (w *tracker) storeLocked(t driver.Token, l watched, now time.Duration) {
	w.byToken[t] = l
	if now-w.swept <= time.Minute {
		return
	}
	w.swept = now
	for t, l := range w.byToken {
		if l.until < now {
			w.dropLocked(t)
		}
	}
}

// renewing marks a name as not armed, because the renewal that the driver sends next ends
// the watching. The driver calls held afterwards.
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

// held records that a token holds its lease, for ttl from now. A ttl of 0 is unknown.
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

// holdsLocked stores l for a token that holds its lease, and schedules the arming.
func (w *tracker) holdsLocked(t driver.Token, l watched, ttl, now time.Duration) {
	if ttl > 0 {
		l.until = now + ttl
	}
	l.armFrom = cmp.Or(l.armFrom, now+watchAfter)
	w.storeLocked(t, l, now)
	w.firstArm = append(w.firstArm, t)
	if !w.awake { // not for each lease, because setting a timer costs more than all else here
		w.awake = true
		w.pace.Reset(watchAfter)
	}
}

// answered records the answer to a claim. After an error the outcome is unknown: the
// claim may be granted now, or later from the queue.
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
		w.rearmLocked(l.name, n) // the server does not report the end of t, because this driver ended it
	}
}

// watchPace is the shortest time between two armings of a name because of changes.
const watchPace = 500 * time.Millisecond

// rearmLocked schedules a name to be armed again: at once, or later if it was armed
// within the last watchPace.
func (w *tracker) rearmLocked(name string, n *watchedName) {
	n.changes++
	if n.rearming {
		return
	}
	now := time.Since(w.began)
	if n.rearming = true; now-n.rearmFrom >= watchPace {
		n.rearmFrom = now
		w.rearmNowLocked(name)
		return
	}
	at := now + watchPace
	n.rearmFrom = at
	time.AfterFunc(watchPace, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n.rearming && n.rearmFrom == at { // otherwise a renewal has armed the name meanwhile
			w.rearmNowLocked(name)
		}
	})
}

func (w *tracker) rearmNowLocked(name string) {
	w.rearm = append(w.rearm, name)
	select {
	case w.wakeNow <- struct{}{}:
	default:
	}
}

// changed records that another client has changed the state of a name, and schedules the
// arming. It does nothing if a renewal of each of the name's tokens is under way, because
// the answers show whether the leases still hold.
func (w *tracker) changed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	if n != nil && slices.ContainsFunc(n.tokens, func(t driver.Token) bool { return w.byToken[t].armed }) {
		w.rearmLocked(name, n)
	}
}

// watchAgain is the pause after a name could not be armed. The next pauses are longer.
const (
	watchAgain    = 50 * time.Millisecond
	watchAgainMax = 5 * time.Second
)

// run arms the names that are due, until ctx ends. It calls lost with the tokens whose
// lease may be gone.
func (w *tracker) run(ctx context.Context, lost func([]driver.Token)) {
	defer w.pace.Stop()
	pause := watchAgain
	var again <-chan time.Time // nil if no name has failed
	var failed []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wakeNow:
			w.mu.Lock()
			names := w.rearm
			w.rearm = nil
			w.mu.Unlock()
			failed = append(failed, w.arm(ctx, names, lost, false)...)
		case <-w.pace.C:
			if names := w.takeDue(); names != nil {
				failed = append(failed, w.arm(ctx, names, lost, false)...)
				w.pace.Reset(watchAfter / 2)
			}
		case <-again:
			// A failed name could not be watched for a while, and the server may be
			// another one. So arm these names again, and let all their holders check.
			failed, again = w.arm(ctx, failed, lost, true), nil
		}
		w.fails.Store(len(failed) > 0)
		switch {
		case len(failed) == 0:
			pause = watchAgain
		case again == nil:
			again = time.After(backoff.JitterUp(pause))
			pause = min(2*pause, watchAgainMax)
		}
	}
}

// works reports whether all armings of the last attempt succeeded.
func (w *tracker) works() bool { return w != nil && !w.fails.Load() }

// takeDue returns the names to be armed after a grant or a renewal, maybe an empty list.
// If no token is scheduled, it returns nil, and run sleeps.
func (w *tracker) takeDue() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.firstArm) == 0 {
		w.firstArm, w.awake = nil, false
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
				w.byName[l.name] = &watchedName{rearmFrom: -watchPace}
			}
			w.byName[l.name].tokens = append(w.byName[l.name].tokens, t)
		}
		names = append(names, l.name)
	}
	w.firstArm = w.firstArm[n:]
	return names
}

// arm arms names, and returns those for which it failed. It calls lost with the tokens
// whose lease may be gone; if doubtful, with all.
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

// list marks the tokens of names as armed. It does so before the request, because the
// server may report a change before it answers. It returns the names that are still held,
// and their keys.
func (w *tracker) list(names []string) (known, states []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		n := w.byName[name]
		if n == nil {
			continue
		}
		n.rearming, n.asked = false, n.changes
		for _, t := range n.tokens {
			l := w.byToken[t]
			l.armed = true
			w.byToken[t] = l
		}
		known, states = append(known, name), append(states, key(w.prefix, name))
	}
	return known, states
}

// tokensToNotify returns the tokens of a name whose lease may be gone, according to the
// state of the name. It returns a token once until the name is armed again.
func (w *tracker) tokensToNotify(name string, p WatchReply, doubtful bool) (tokens []driver.Token) {
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

// mayHold reports whether a token may hold its lease, according to the first fields of
// the state: the token of an exclusive holder, and the number of shared holders. See
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

// Invalidated notifies the driver that another client has changed these keys; nil means
// that any key may have changed. It does not block.
func (d *Driver) Invalidated(keys []string) {
	if d.tracking == nil || d.closed.Load() {
		return
	}
	if keys == nil {
		d.signals.listeners.Notify(driver.Signal{Kind: driver.SignalRetry})
		return
	}
	for _, key := range keys {
		if name, ok := nameOf(d.Prefix, key); ok {
			d.tracking.changed(name)
		}
	}
}

// lost notifies the holders of these tokens that they may have lost their leases, and
// have to check.
func (d *Driver) lost(tokens []driver.Token) {
	for _, t := range tokens {
		d.signals.listeners.Notify(driver.Signal{Kind: driver.SignalLost, Token: t})
	}
}
