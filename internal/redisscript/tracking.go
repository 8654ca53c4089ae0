package redisscript

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// armDelay is the age of a lease at which the driver begins to watch its name. Most
// leases end earlier, and so cost nothing.
const armDelay = 10 * time.Millisecond

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
// change, the tracker arms the name again: at once, or once in minRearmInterval if
// changes are frequent. Arming also reads the state of the name, which shows whether the
// lease may be gone.
type tracker struct {
	watch     func(ctx context.Context, keys []string) []WatchReply // of the Client
	prefix    string
	listeners *driver.Listeners
	timer     *time.Timer // wakes run
	armFailed atomic.Bool // the last attempt to arm failed for some name

	mu       sync.Mutex // protects the fields below, and the fields of leases and names
	byToken  map[driver.Token]*trackedLease
	byName   map[string]*trackedName // names that were armed; most leases end before that
	due      []*trackedLease         // to be armed, in the order of their grants and renewals
	rearm    []string                // names to be armed again at once, after a change
	timerSet bool                    // timer is set
	sweptAt  time.Time
}

type trackedLease struct {
	token     driver.Token
	name      string
	armAt     time.Time // the earliest time to arm its name; zero while the lease is not granted
	until     time.Time // the latest end of the lease
	exclusive bool
	listed    bool // byName has its name, with this lease
	armed     bool // its name was armed, and since then no renewal has begun and no notification was sent
	ended     bool // byToken no longer has it
}

type trackedName struct {
	name           string
	leases         []*trackedLease
	rearmAt        time.Time // the time of the last or next arming for a change
	rearmScheduled bool      // the next arming for a change has not begun

	// changes counts the reported changes of the name. sentChanges is its value at the
	// last arming, answeredChanges at the last answered one. If changes is greater than
	// answeredChanges, the name may have changed after its state was read.
	changes, sentChanges, answeredChanges int
}

func newTracker(watch func(ctx context.Context, keys []string) []WatchReply, prefix string, l *driver.Listeners) *tracker {
	return &tracker{
		watch: watch, prefix: prefix, listeners: l, timer: time.NewTimer(time.Hour), sweptAt: time.Now(),
		byName: map[string]*trackedName{}, byToken: map[driver.Token]*trackedLease{},
	}
}

// addClaim adds a claim before the driver sends it alone. Such a claim may queue, and be
// granted by another client's release before its own answer arrives.
func (w *tracker) addClaim(c *driver.Claim) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addClaimLocked(c, time.Now())
}

// addClaimLocked returns the lease of a claim. Once a minute it forgets the leases that
// ended without a call of forgetToken.
func (w *tracker) addClaimLocked(c *driver.Claim, now time.Time) *trackedLease {
	l := w.byToken[c.Token]
	if l == nil {
		l = &trackedLease{token: c.Token}
		w.byToken[c.Token] = l
	}
	l.name, l.exclusive, l.armed, l.until = c.Name, c.Weight == driver.Exclusive, false, now.Add(max(c.TTL, c.QueueTTL))
	if now.Sub(w.sweptAt) > time.Minute {
		w.sweptAt = now
		for _, l := range w.byToken {
			if l.until.Before(now) {
				w.dropLocked(l)
			}
		}
	}
	return l
}

// recordAnswer records the answer to a claim, at now. It may be the first call for this
// claim. After an error the outcome is unknown: the claim may be granted now, or later
// from the queue.
func (w *tracker) recordAnswer(c *driver.Claim, now time.Time, refused, err error) {
	switch {
	case w == nil || err != nil:
	case refused == nil:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.recordHeldLocked(w.addClaimLocked(c, now), c.TTL, now)
	case !c.Queue || errors.Is(refused, driver.ErrValueNotBelow): // the claim has no place
		w.forgetToken(c.Token)
	}
}

// withLease calls f with the lease of a token, if the tracker has it.
func (w *tracker) withLease(t driver.Token, f func(l *trackedLease)) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.byToken[t]; l != nil {
		f(l)
	}
}

// disarm marks a name as not armed, because the renewal that the driver sends next
// ends the watching. The driver calls recordHeld afterwards.
func (w *tracker) disarm(t driver.Token) { w.withLease(t, func(l *trackedLease) { l.armed = false }) }

// recordHeld records that a token holds its lease for ttl from now; 0 means unknown.
func (w *tracker) recordHeld(t driver.Token, ttl time.Duration) {
	w.withLease(t, func(l *trackedLease) { w.recordHeldLocked(l, ttl, time.Now()) })
}

// recordHeldLocked records that a lease is held, and schedules the arming.
func (w *tracker) recordHeldLocked(l *trackedLease, ttl time.Duration, now time.Time) {
	if ttl > 0 {
		l.until = now.Add(ttl)
	}
	if l.armAt.IsZero() {
		l.armAt = now.Add(armDelay)
	}
	w.due = append(w.due, l)
	if !w.timerSet { // not for each lease, because setting a timer costs more than all else here
		w.timerSet = true
		w.timer.Reset(armDelay)
	}
}

func (w *tracker) forgetToken(t driver.Token) { w.withLease(t, w.dropLocked) }

func (w *tracker) dropLocked(l *trackedLease) {
	l.ended = true
	delete(w.byToken, l.token)
	if !l.listed {
		return
	}
	n := w.byName[l.name]
	n.leases = slices.DeleteFunc(n.leases, func(other *trackedLease) bool { return other == l })
	if len(n.leases) == 0 {
		delete(w.byName, l.name)
	} else {
		w.rearmLocked(n) // the server does not report the end of l, because this driver ended it
	}
}

// minRearmInterval is the shortest time between two armings of a name because of changes.
const minRearmInterval = 500 * time.Millisecond

// rearmLocked schedules a name to be armed again: at once, or later if it was armed
// within the last minRearmInterval.
func (w *tracker) rearmLocked(n *trackedName) {
	n.changes++
	if n.rearmScheduled {
		return
	}
	now, pause := time.Now(), time.Duration(0)
	if now.Sub(n.rearmAt) < minRearmInterval {
		pause = minRearmInterval
	}
	at := now.Add(pause)
	n.rearmScheduled, n.rearmAt = true, at
	time.AfterFunc(pause, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n.rearmScheduled && n.rearmAt.Equal(at) { // otherwise a renewal has armed the name meanwhile
			w.rearm = append(w.rearm, n.name)
			w.timerSet = true
			w.timer.Reset(0)
		}
	})
}

// changed records that another client has changed the state of a name, and schedules the
// arming. It does nothing if a renewal of each of the name's tokens is under way, because
// the answers show whether the leases still hold.
func (w *tracker) changed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	if n != nil && slices.ContainsFunc(n.leases, func(l *trackedLease) bool { return l.armed }) {
		w.rearmLocked(n)
	}
}

// After a failed arming, the pause grows from minRewatchPause to maxRewatchPause.
const (
	minRewatchPause = 50 * time.Millisecond
	maxRewatchPause = 5 * time.Second
)

// run arms the names that are due, until ctx ends.
func (w *tracker) run(ctx context.Context) {
	defer w.timer.Stop()
	failures := 0
	var retryTimer <-chan time.Time // nil if no name has failed
	var failed []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.timer.C:
			failed = append(failed, w.arm(ctx, w.takeDue(), false)...)
		case <-retryTimer:
			// A failed name could not be watched for a while, and the server may be
			// another one. So arm these names again, and let all their holders check.
			failed, retryTimer = w.arm(ctx, failed, true), nil
		}
		w.armFailed.Store(len(failed) > 0)
		switch {
		case len(failed) == 0:
			failures = 0
		case retryTimer == nil:
			retryTimer = time.After(backoff.JitterUp(backoff.Doubled(minRewatchPause, failures, maxRewatchPause)))
			failures++
		}
	}
}

// works reports whether all armings of the last attempt succeeded.
func (w *tracker) works() bool { return w != nil && !w.armFailed.Load() }

// takeDue returns the names that are to be armed now, and sets the timer for the next.
func (w *tracker) takeDue() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, w.rearm = w.rearm, nil
	now := time.Now()
	for len(w.due) > 0 {
		l := w.due[0]
		if !l.ended && l.armAt.After(now) {
			w.timer.Reset(armDelay / 2)
			return names
		}
		w.due = w.due[1:]
		if l.ended {
			continue
		}
		n := w.byName[l.name]
		if n == nil {
			n = &trackedName{name: l.name}
			w.byName[l.name] = n
		}
		if !l.listed {
			l.listed = true
			n.leases = append(n.leases, l)
		}
		names = append(names, l.name)
	}
	w.due, w.timerSet = nil, false
	return names
}

// arm arms names, and returns those for which it failed. It notifies the holders whose
// lease may be gone, or with checkAll all holders. They then check their leases.
func (w *tracker) arm(ctx context.Context, names []string, checkAll bool) (failed []string) {
	slices.Sort(names)
	for batch := range slices.Chunk(slices.Compact(names), 256) {
		known, states := w.markArmed(batch)
		if len(known) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		for i, p := range w.watch(ctx, states) {
			if p.Err != nil {
				failed = append(failed, known[i].name)
			}
			for _, t := range w.tokensToNotify(known[i], p, checkAll) {
				w.listeners.Notify(driver.Signal{Kind: driver.SignalLost, Token: t})
			}
		}
		cancel()
	}
	return failed
}

// markArmed marks the leases of names as armed. It does so before the request, because
// the server may report a change before it answers. It returns the names that are still
// held, and their keys.
func (w *tracker) markArmed(names []string) (known []*trackedName, states []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		n := w.byName[name]
		if n == nil {
			continue
		}
		n.rearmScheduled, n.sentChanges = false, n.changes
		for _, l := range n.leases {
			l.armed = true
		}
		known, states = append(known, n), append(states, stateKey(w.prefix, name))
	}
	return known, states
}

// tokensToNotify returns the tokens of a name whose lease may be gone, according to the
// state of the name. It returns a token once until the name is armed again.
func (w *tracker) tokensToNotify(n *trackedName, p WatchReply, checkAll bool) (tokens []driver.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Err != nil && n.answeredChanges == n.changes {
		return nil
	}
	n.answeredChanges = n.sentChanges
	for _, l := range n.leases {
		if l.armed && (checkAll || p.Err != nil || !mayHold(p.State, l.token, l.exclusive)) {
			l.armed = false
			tokens = append(tokens, l.token)
		}
	}
	return tokens
}

// storedVersion is the first byte of each stored state, the version of the format.
const storedVersion = 165

// mayHold reports whether a token may hold its lease, according to the first fields of
// the state: the token of an exclusive holder, and the number of shared holders. See
// lua/lib/layout.lua.
func mayHold(state string, t driver.Token, exclusive bool) bool {
	const headSize, holdersOffset = 26, 26 + 8 + 8
	if len(state) < headSize || state[0] != storedVersion {
		return false
	}
	offset, hasDetails := headSize, state[1]%4 >= 2
	if hasDetails {
		offset += 40
	}
	if exclusive {
		offset += 8 + 8 + 4
		return state[1]%2 == 1 && len(state) >= offset+len(t) && state[offset:offset+len(t)] == string(t[:])
	}
	return state[1]%2 == 0 && hasDetails && len(state) >= offset && binary.BigEndian.Uint32([]byte(state[holdersOffset:holdersOffset+4])) > 0
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
