package postgreslock

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// atOnce is how many names are looked at in one statement.
const atOnce = 1000

// look tells what has happened to the claims of this client while nobody listened. It
// reports whether it could.
func (l *listener) look() bool {
	byName := map[string][]driver.Token{}
	l.mu.Lock()
	for t, c := range l.claims {
		byName[c.name] = append(byName[c.name], t)
	}
	l.mu.Unlock()
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	for some := range slices.Chunk(names, atOnce) {
		ctx, cancel := context.WithTimeout(l.life, answers)
		all, err := l.store.Load(ctx, some)
		cancel()
		if err != nil {
			return false
		}
		for i, name := range some {
			e := &locktable.Entry{}
			if len(all[i].Value) > 0 {
				if e, err = locktable.Decode(all[i].Value); err != nil {
					continue // whoever asks for it is told
				}
			}
			for _, t := range byName[name] {
				l.compare(t, e)
			}
		}
	}
	return true
}

// compare tells of a claim what its entry says, if it is news.
func (l *listener) compare(t driver.Token, e *locktable.Entry) {
	l.mu.Lock()
	c, ok := l.claims[t]
	l.mu.Unlock()
	h := slices.IndexFunc(e.Holders, func(h locktable.Holder) bool { return h.Token == t })
	waits := slices.ContainsFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == t })
	switch {
	case !ok:
	case c.held && h < 0:
		l.deliver(driver.Signal{Kind: driver.SignalLost, Token: t})
	case !c.held && h >= 0:
		l.deliver(driver.Signal{Kind: driver.SignalGranted, Token: t, Fence: e.Holders[h].Fence, Fences: e.Holders[h].Fences})
	case !c.held && (!waits || engine.OpensAt(e, t) != 0): // or it waits in a row of its own, or lost its place
		l.deliver(driver.Signal{Kind: driver.SignalLook, Token: t})
	}
}
