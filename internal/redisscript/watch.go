package redisscript

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Watcher is a Sender whose server tells when somebody else changes a key: client tracking. It calls
// [Driver.Invalidated] then.
type Watcher interface {
	// Watch makes the server tell of the next change of each key, and answers per key, in order.
	Watch(ctx context.Context, keys []string) []Armed
}

// Armed is what is known of a key when it has begun to be watched, or why it has not.
type Armed struct {
	There bool
	Err   error
}

// A lease is watched when it has lasted this long: most are over by then, and cost nothing.
const watchAfter = 10 * time.Millisecond

// watch lets holders hear at once when their name is deleted, flushed, evicted or overwritten by somebody who does not
// send signals: whoever uses the scripts does. A nil *watch does nothing.
//
// Watching ends with each change, our own included: a renewal has to arm it again. It also ends with the connection, and
// when another node of a cluster gets the name; both are heard of, and whoever then looks renews, and so arms it.
type watch struct {
	server Watcher
	prefix string
	began  time.Time
	wake   chan struct{} // holds one: run sleeps, and due is no longer empty
	fails  atomic.Bool   // the last attempt to arm did, for some name

	mu      sync.Mutex // protects all below
	byToken map[driver.Token]watched
	byName  map[string][]driver.Token // those that were armed once: most are over before
	due     []driver.Token            // to be armed, in the order of their grants
	awake   bool                      // run looks at due by itself
	swept   time.Duration
}

type watched struct {
	name   string
	at     time.Duration // since watch.began: not armed before; 0 while it is not granted
	until  time.Duration // since watch.began: it is over by then, if nobody said so before
	listed bool          // in byName
	armed  bool          // a change would be news: it is not our own renewal, and we have not heard of it yet
}

func newWatch(s Watcher, prefix string) *watch {
	return &watch{
		server: s, prefix: prefix, began: time.Now(), wake: make(chan struct{}, 1),
		byName: map[string][]driver.Token{}, byToken: map[driver.Token]watched{},
	}
}

// claim notes a claim before it is sent: the grant may be passed to it before the answer is here.
func (w *watch) claim(c *driver.Claim) {
	if w == nil {
		return
	}
	now := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.byToken[c.Token]
	l.name, l.armed, l.until = c.Name, false, now+max(c.TTL, c.WaitTTL)
	w.byToken[c.Token] = l
	if now-w.swept > time.Minute {
		w.sweep(now)
	}
}

// sweep forgets those that ended without a word. The caller holds the mutex.
func (w *watch) sweep(now time.Duration) {
	w.swept = now
	for t, l := range w.byToken {
		if l.until < now {
			w.drop(t)
		}
	}
}

// renewing says that a change will be our own. It comes before the renewal is sent, and held after it.
func (w *watch) renewing(t driver.Token) {
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
func (w *watch) held(t driver.Token, ttl time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l, known := w.byToken[t]
	if !known {
		return
	}
	now := time.Since(w.began)
	if ttl > 0 {
		l.until = now + ttl
	}
	if l.at == 0 {
		l.at = now + watchAfter
	}
	w.byToken[t] = l
	w.due = append(w.due, t)
	if !w.awake { // to wake it for each lease would cost more than the rest
		w.awake = true
		w.wake <- struct{}{} // there is room: what was in it was read before run fell asleep
	}
}

func (w *watch) over(t driver.Token) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(t)
}

func (w *watch) drop(t driver.Token) {
	l, known := w.byToken[t]
	if !known {
		return
	}
	delete(w.byToken, t)
	if !l.listed {
		return
	}
	all := w.byName[l.name]
	if len(all) == 1 {
		delete(w.byName, l.name)
	} else if i := slices.Index(all, t); i >= 0 {
		w.byName[l.name] = slices.Delete(all, i, i+1)
	}
}

// A name that could not be armed is tried again after this pause, and then after longer ones.
const (
	watchAgain    = 50 * time.Millisecond
	watchAgainMax = 5 * time.Second
)

// run arms what is due, until ctx ends. lost is called with the tokens whose name is not there any more, or may not
// have been for a while.
func (w *watch) run(ctx context.Context, lost func([]driver.Token)) {
	pace, again := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer pace.Stop()
	defer again.Stop()
	pause, waits := watchAgain, false
	var failed []driver.Token
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			pace.Reset(watchAfter)
		case <-pace.C:
			if tokens := w.take(); tokens != nil {
				failed = append(failed, w.arm(ctx, tokens, lost, false)...)
				pace.Reset(watchAfter / 2)
			}
		case <-again.C:
			// The server may be another one, or the name another's: so they are armed first, and checked then.
			slices.SortFunc(failed, func(a, b driver.Token) int { return bytes.Compare(a[:], b[:]) })
			failed, waits = w.arm(ctx, slices.Compact(failed), lost, true), false
		}
		w.fails.Store(len(failed) > 0)
		switch {
		case len(failed) == 0:
			pause = watchAgain
		case !waits:
			again.Reset(pause + rand.N(pause))
			pause, waits = min(2*pause, watchAgainMax), true
		}
	}
}

// works reports whether somebody else's changes are told, as far as it is known.
func (w *watch) works() bool { return w != nil && !w.fails.Load() }

// take returns those whose time has come, empty if there are none yet. If nothing is due it is nil, and run sleeps.
func (w *watch) take() []driver.Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.due) == 0 {
		w.due, w.awake = nil, false
		return nil
	}
	now, tokens, n := time.Since(w.began), []driver.Token{}, 0
	for _, t := range w.due {
		l, known := w.byToken[t]
		if known && l.at > now {
			break
		}
		n++
		if known {
			tokens = append(tokens, t)
		}
	}
	w.due = w.due[n:]
	return tokens
}

// arm has the names of tokens watched, and returns the tokens whose are not. It tells of names that are missing, or of all
// if doubtful.
func (w *watch) arm(ctx context.Context, tokens []driver.Token, lost func([]driver.Token), doubtful bool) (failed []driver.Token) {
	for some := range slices.Chunk(tokens, 256) {
		some, names, states := w.list(some)
		if len(names) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		for i, p := range w.server.Watch(ctx, states) {
			switch {
			case p.Err != nil:
				failed = append(failed, some[i])
			case !p.There || doubtful:
				lost(w.news(names[i]))
			}
		}
		cancel()
	}
	return failed
}

// list notes that a change would be news, before it is asked for: the news may be quicker than the answer. It returns the
// tokens that have not ended, their names, and the keys of these.
func (w *watch) list(tokens []driver.Token) (known []driver.Token, names, states []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tokens {
		l, here := w.byToken[t]
		if !here {
			continue
		}
		if !l.listed {
			l.listed = true
			w.byToken[t] = l
			w.byName[l.name] = append(w.byName[l.name], t)
		}
		for _, t := range w.byName[l.name] {
			l := w.byToken[t]
			l.armed = true
			w.byToken[t] = l
		}
		known, names, states = append(known, t), append(names, l.name), append(states, key(w.prefix, l.name))
	}
	return known, names, states
}

// news are the tokens for which a change of their name is news. They are told once, until they are armed again.
func (w *watch) news(name string) (tokens []driver.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.byName[name] {
		if l := w.byToken[t]; l.armed {
			l.armed = false
			w.byToken[t] = l
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// Invalidated tells the driver that somebody else changed what stands at these keys; no keys means that this may be
// so for all of them. It does not block.
func (d *Driver) Invalidated(keys []string) {
	if d.watch == nil || d.closed.Load() {
		return
	}
	if keys == nil {
		d.inbox.listeners.Tell(driver.Signal{Kind: driver.Look})
		return
	}
	for _, key := range keys {
		if name, ok := nameOf(d.Prefix, key); ok {
			d.lost(d.watch.news(name))
		}
	}
}

// lost tells those who claimed these tokens that they may hold nothing any more: it is for them to check.
func (d *Driver) lost(tokens []driver.Token) {
	for _, t := range tokens {
		d.inbox.listeners.Tell(driver.Signal{Kind: driver.Lost, Token: t})
	}
}
