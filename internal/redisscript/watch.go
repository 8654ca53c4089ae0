package redisscript

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Watcher is a Sender whose server tells when somebody else changes a key: client tracking. It calls
// [Driver.Invalidated] then.
type Watcher interface {
	// Watch makes the server tell of the next change of each key, and says which of them exist.
	Watch(ctx context.Context, keys []string) ([]bool, error)
}

// A lease is watched when it has lasted this long: most are over by then, and cost nothing.
const watchAfter = 10 * time.Millisecond

// watch lets holders hear at once when their name is deleted, flushed, evicted or overwritten by somebody who does not
// send signals: whoever uses the scripts does. A nil *watch does nothing.
//
// Watching ends with each change, our own included: a renewal has to arm it again.
type watch struct {
	server Watcher
	prefix string
	began  time.Time
	wake   chan struct{} // holds one: due is no longer empty

	mu      sync.Mutex // protects all below
	byToken map[driver.Token]watched
	byName  map[string][]driver.Token // those that were armed once: most are over before
	due     []driver.Token            // to be armed, in the order of their grants
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
	if len(w.due) == 1 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
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

// run arms what is due, until ctx ends. missing is called with the tokens whose name is not there any more.
func (w *watch) run(ctx context.Context, missing func([]driver.Token)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		for tokens := w.take(); tokens != nil; tokens = w.take() {
			timer.Reset(watchAfter / 2)
			for some := range slices.Chunk(tokens, 256) {
				w.arm(ctx, some, missing)
			}
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		}
	}
}

// take returns those whose time has come, empty if there are none yet, and nil if nothing is due.
func (w *watch) take() []driver.Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.due) == 0 {
		w.due = nil
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

func (w *watch) arm(ctx context.Context, tokens []driver.Token, missing func([]driver.Token)) {
	names, states := make([]string, 0, len(tokens)), make([]string, 0, len(tokens))
	w.mu.Lock()
	for _, t := range tokens {
		l, known := w.byToken[t]
		if !known {
			continue
		}
		if !l.listed {
			l.listed = true
			w.byToken[t] = l
			w.byName[l.name] = append(w.byName[l.name], t)
		}
		for _, t := range w.byName[l.name] { // before it is sent: the news may be quicker than the answer
			l := w.byToken[t]
			l.armed = true
			w.byToken[t] = l
		}
		names, states = append(names, l.name), append(states, key(w.prefix, l.name))
	}
	w.mu.Unlock()
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	there, err := w.server.Watch(ctx, states)
	if err != nil {
		return // the next renewal says what is wrong, and arms again
	}
	for i, name := range names {
		if !there[i] {
			missing(w.news(name))
		}
	}
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
		d.inbox.deliver(driver.Signal{Kind: driver.Look})
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
		d.inbox.deliver(driver.Signal{Kind: driver.Lost, Token: t})
	}
}
