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

// A Watcher is a Sender whose server tells when somebody else changes a key: client
// tracking. It calls [Driver.Invalidated] then.
type Watcher interface {
	// Watch makes the server tell of the next change of each key, and answers per key, in
	// order.
	Watch(ctx context.Context, keys []string) []Armed
}

// Armed is what stands at a key when it has begun to be watched, or why it has not.
type Armed struct {
	State string // empty if there is nothing, or nothing of ours
	Err   error
}

// A lease is watched when it has lasted this long: most are over by then, and cost
// nothing.
const watchAfter = 10 * time.Millisecond

// A tracker lets holders hear at once when their name is deleted, flushed, evicted or
// overwritten by somebody who does not send signals: whoever uses the scripts does. A nil
// *tracker does nothing.
//
// Watching ends with each change, our own included: a renewal has to arm it again. It
// also ends with the connection, and when another node of a cluster gets the name; both
// are heard of, and whoever then looks renews, and so arms it.
//
// Most changes are those of others who hold or wait for the same name, and cost the
// holder no more than to arm it again: at once, if that was not done lately, and then at
// a pace. What is read for that says whether the name is gone, or another's.
type tracker struct {
	server Watcher
	prefix string
	began  time.Time
	wake   chan struct{} // holds one: run sleeps, and due or later is no longer empty
	hurry  chan struct{} // holds one: soon is no longer empty
	fails  atomic.Bool   // the last attempt to arm did, for some name

	mu      sync.Mutex // protects all below
	byToken map[driver.Token]watched
	byName  map[string]*watchedName // those that were armed once: most are over before
	due     []driver.Token          // to be armed, in the order of their grants
	soon    []string                // to be armed again, for they were changed
	later   []string                // the same, in the order of their times
	awake   bool                    // run looks at due and later by itself
	swept   time.Duration
}

type watched struct {
	name   string
	at     time.Duration // since tracker.began: not armed before; 0 while it is not granted
	until  time.Duration // since tracker.began: it is over by then, if nobody said so before
	all    bool          // it holds all of the name
	listed bool          // in byName
	armed  bool          // a change would be news: not our own renewal, and not heard of yet
}

type watchedName struct {
	tokens []driver.Token
	last   time.Duration // since tracker.began: when it was armed again
	again  time.Duration // since tracker.began: not armed again before; 0 if it need not be

	// How many changes were heard of; by the last arming; and as of the last whose answer
	// says what they mean. One that comes while the name is being armed may be later than
	// what is read for that.
	changes, asked, known int
}

func newTracker(s Watcher, prefix string) *tracker {
	return &tracker{
		server: s, prefix: prefix, began: time.Now(), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		byName: map[string]*watchedName{}, byToken: map[driver.Token]watched{},
	}
}

// claim notes a claim before it is sent by itself: it may queue, and the grant be passed
// to it before the answer is here. Claims that share a script do not queue.
func (w *tracker) claim(c *driver.Claim) {
	if w == nil {
		return
	}
	now := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.byToken[c.Token]
	l.name, l.all, l.armed, l.until = c.Name, c.Weight == driver.Exclusive, false, now+max(c.TTL, c.QueueTTL)
	w.byToken[c.Token] = l
	if now-w.swept > time.Minute {
		w.sweepLocked(now)
	}
}

// granted notes a claim that was granted then. It may be the first that is heard of it.
func (w *tracker) granted(c *driver.Claim, now time.Time) {
	if w == nil {
		return
	}
	passed := now.Sub(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	l, known := w.byToken[c.Token]
	if !known {
		l.name, l.all = c.Name, c.Weight == driver.Exclusive
	}
	w.holdsLocked(c.Token, l, c.TTL, passed)
	if passed-w.swept > time.Minute {
		w.sweepLocked(passed)
	}
}

// sweepLocked forgets those that ended without a word.
func (w *tracker) sweepLocked(now time.Duration) {
	w.swept = now
	for t, l := range w.byToken {
		if l.until < now {
			w.dropLocked(t)
		}
	}
}

// renewing says that a change will be our own. It comes before the renewal is sent, and
// held after it.
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

// held says that a token holds its lease, for ttl from now; zero if that is not known.
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

// holdsLocked is held for one that is known.
func (w *tracker) holdsLocked(t driver.Token, l watched, ttl, now time.Duration) {
	if ttl > 0 {
		l.until = now + ttl
	}
	l.at = cmp.Or(l.at, now+watchAfter)
	w.byToken[t] = l
	w.due = append(w.due, t)
	w.rouseLocked()
}

// rouseLocked makes run look at due and later.
func (w *tracker) rouseLocked() {
	if !w.awake { // to wake it for each lease would cost more than the rest
		w.awake = true
		w.wake <- struct{}{} // there is room: what was in it was read before run fell asleep
	}
}

// answered says how a claim was answered. After an error nothing is known: it may be
// granted, or may be told later that it is.
func (w *tracker) answered(c *driver.Claim, now time.Time, refused bool, err error) {
	switch {
	case err != nil:
	case !refused:
		w.granted(c, now)
	case !c.Queue:
		w.over(c.Token)
	}
}

func (w *tracker) over(t driver.Token) {
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
		w.rearmLocked(l.name, n) // its end is a change of our own, of which we are not told
	}
}

// watchPace is how often a name is armed again because it was changed, at most.
const watchPace = 500 * time.Millisecond

// rearmLocked has a name armed again: at once, if it was not lately.
func (w *tracker) rearmLocked(name string, n *watchedName) {
	now := time.Since(w.began)
	n.changes++
	switch {
	case n.again != 0:
	case now-n.last >= watchPace:
		n.again, n.last = now, now
		w.soon = append(w.soon, name)
		select {
		case w.hurry <- struct{}{}:
		default:
		}
	default:
		n.again = now + watchPace
		n.last = n.again
		w.later = append(w.later, name)
		w.rouseLocked()
	}
}

// changed notes that somebody has changed what stands at a name. A renewal that is under
// way will say what that means.
func (w *tracker) changed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	if n != nil && slices.ContainsFunc(n.tokens, func(t driver.Token) bool { return w.byToken[t].armed }) {
		w.rearmLocked(name, n)
	}
}

// A name that could not be armed is tried again after this pause, and then after longer
// ones.
const (
	watchAgain    = 50 * time.Millisecond
	watchAgainMax = 5 * time.Second
)

// run arms what is due, until ctx ends. lost is called with the tokens whose name is not
// there any more, or may not have been for a while.
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
			failed = append(failed, w.arm(ctx, w.takeSoon(), lost, false)...)
		case <-w.wake:
			pace.Reset(watchAfter)
		case <-pace.C:
			if names := w.take(); names != nil {
				failed = append(failed, w.arm(ctx, names, lost, false)...)
				pace.Reset(watchAfter / 2)
			}
		case <-again.C:
			// The server may be another one, or the name another's: so they are armed
			// first, and checked then.
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

// works reports whether somebody else's changes are told, as far as it is known.
func (w *tracker) works() bool { return w != nil && !w.fails.Load() }

func (w *tracker) takeSoon() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := w.soon
	w.soon = nil
	return names
}

// take returns the names whose time has come, empty if there are none yet. If nothing is
// due it is nil, and run sleeps.
func (w *tracker) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.due)+len(w.later) == 0 {
		w.due, w.later, w.awake = nil, nil, false
		return nil
	}
	now, names, n := time.Since(w.began), []string{}, 0
	for _, t := range w.due {
		l, known := w.byToken[t]
		if known && l.at > now {
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
				w.byName[l.name] = &watchedName{last: -watchPace}
			}
			w.byName[l.name].tokens = append(w.byName[l.name].tokens, t)
		}
		names = append(names, l.name)
	}
	w.due, n = w.due[n:], 0
	for _, name := range w.later {
		if at := w.byName[name]; at != nil && at.again > now {
			break
		}
		n++
		names = append(names, name)
	}
	w.later = w.later[n:]
	return names
}

// arm has names watched, and returns those that are not. It tells of those that are
// missing, of those that were changed and cannot be looked at, or of all if doubtful.
func (w *tracker) arm(ctx context.Context, names []string, lost func([]driver.Token), doubtful bool) (failed []string) {
	slices.Sort(names)
	for some := range slices.Chunk(slices.Compact(names), 256) {
		some, states := w.list(some)
		if len(some) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		for i, p := range w.server.Watch(ctx, states) {
			if p.Err != nil {
				failed = append(failed, some[i])
			}
			lost(w.news(some[i], p, doubtful))
		}
		cancel()
	}
	return failed
}

// list notes that a change would be news, before it is asked for: the news may be quicker
// than the answer. It returns the names that are still held, and their keys.
func (w *tracker) list(names []string) (known, states []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		n := w.byName[name]
		if n == nil {
			continue
		}
		n.again, n.asked = 0, n.changes
		for _, t := range n.tokens {
			l := w.byToken[t]
			l.armed = true
			w.byToken[t] = l
		}
		known, states = append(known, name), append(states, key(w.prefix, name))
	}
	return known, states
}

// news are the tokens of a name that may hold nothing any more, by what stands there.
// They are told once, until they are armed again.
func (w *tracker) news(name string, p Armed, doubtful bool) (tokens []driver.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	if n == nil || p.Err != nil && n.known == n.changes {
		return nil
	}
	n.known = n.asked
	for _, t := range n.tokens {
		if l := w.byToken[t]; l.armed && (doubtful || p.Err != nil || !mayHold(p.State, t, l.all)) {
			l.armed = false
			w.byToken[t] = l
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// storedVersion is the first byte of what is stored of a name.
const storedVersion = 163

// mayHold reports whether a token may hold its lease, by the first fields of what is
// stored, see lua/lib/layout.lua: an exclusive holder is there by its token, and of the
// others there is the number.
func mayHold(state string, t driver.Token, all bool) bool {
	const details, shared = 26, 26 + 8 + 8
	if len(state) < details || state[0] != storedVersion {
		return false
	}
	at, more := details, state[1]%4 >= 2
	if more {
		at += 40
	}
	if all {
		at += 8 + 8 + 4
		return state[1]%2 == 1 && len(state) >= at+len(t) && state[at:at+len(t)] == string(t[:])
	}
	return state[1]%2 == 0 && more && len(state) >= at && binary.BigEndian.Uint32([]byte(state[shared:shared+4])) > 0
}

// Invalidated tells the driver that somebody else changed what stands at these keys; no
// keys means that this may be so for all of them. It does not block.
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

// lost tells those who claimed these tokens that they may hold nothing any more: it is
// for them to check.
func (d *Driver) lost(tokens []driver.Token) {
	for _, t := range tokens {
		d.signals.listeners.Notify(driver.Signal{Kind: driver.SignalLost, Token: t})
	}
}
