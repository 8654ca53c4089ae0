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
	wake   chan struct{} // holds one: due is no longer empty

	mu      sync.Mutex // protects all below
	byName  map[string][]driver.Token
	byToken map[driver.Token]watched
	due     []driver.Token // to be armed, in the order of their grants
	swept   time.Time
}

type watched struct {
	name  string
	at    time.Time // not armed before
	until time.Time // it is over by then, if nobody said so before
}

func newWatch(s Watcher, prefix string) *watch {
	return &watch{
		server: s, prefix: prefix, wake: make(chan struct{}, 1),
		byName: map[string][]driver.Token{}, byToken: map[driver.Token]watched{}, swept: time.Now(),
	}
}

// claim notes a claim before it is sent: the grant may be passed to it before the answer is here.
func (w *watch) claim(c *driver.Claim) {
	if w == nil {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.byToken[c.Token]; !known {
		w.byName[c.Name] = append(w.byName[c.Name], c.Token)
	}
	w.byToken[c.Token] = watched{name: c.Name, at: now.Add(watchAfter), until: now.Add(max(c.TTL, c.WaitTTL))}
	if now.Sub(w.swept) > time.Minute {
		w.sweep(now)
	}
}

// sweep forgets those that ended without a word. The caller holds the mutex.
func (w *watch) sweep(now time.Time) {
	w.swept = now
	for t, l := range w.byToken {
		if l.until.Before(now) {
			w.drop(t)
		}
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
	if ttl > 0 {
		l.until = time.Now().Add(ttl)
		w.byToken[t] = l
	}
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
		for names := w.take(); names != nil; names = w.take() {
			timer.Reset(watchAfter / 2)
			for some := range slices.Chunk(names, 256) {
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

// take returns the names whose time has come, empty if there are none yet, and nil if nothing is due.
func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.due) == 0 {
		w.due = nil
		return nil
	}
	now, names, n := time.Now(), []string{}, 0
	for _, t := range w.due {
		l, known := w.byToken[t]
		if known && l.at.After(now) {
			break
		}
		n++
		if known {
			names = append(names, l.name)
		}
	}
	w.due = w.due[n:]
	return names
}

func (w *watch) arm(ctx context.Context, names []string, missing func([]driver.Token)) {
	if len(names) == 0 {
		return
	}
	states := make([]string, len(names))
	for i, name := range names {
		states[i] = keys(w.prefix, name)[0]
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	there, err := w.server.Watch(ctx, states)
	if err != nil {
		return // the next renewal says what is wrong, and arms again
	}
	for i, name := range names {
		if !there[i] {
			missing(w.of(name))
		}
	}
}

func (w *watch) of(name string) []driver.Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.byName[name])
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
			d.lost(d.watch.of(name))
		}
	}
}

// lost tells those who claimed these tokens that they may hold nothing any more: it is for them to check.
func (d *Driver) lost(tokens []driver.Token) {
	for _, t := range tokens {
		d.inbox.deliver(driver.Signal{Kind: driver.Lost, Token: t})
	}
}
