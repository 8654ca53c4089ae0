package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Whoever watches a name subscribes to its channel, and has the watch script note at the
// name that somebody does, and until when. The other scripts read that note with the
// rest, and publish nothing without it: a name that nobody watches costs no call more.
//
// The note ends by itself, and is renewed until then. Where it is found missing (somebody
// deleted the name, or a replica took over that lacked it) something may have happened
// unheard, and everybody looks.
const (
	watchFor  = time.Minute
	watchKeep = 20 * time.Second // after this, or a bit sooner, the note is looked after
)

// watching is what a driver has of those who watch.
type watching struct {
	driver.Watchers
	deaf atomic.Int32 // how many names are watched of which nothing can be heard now

	mu  sync.Mutex        // protects all
	all map[string]*watch // of each name the last one, until it has ended
}

// A watch is a name that somebody watches.
type watch struct {
	d      *Driver
	name   string
	tell   func()
	before *watch // of the same name; it ends first, for it gives up the same channel
	ended  chan struct{}
	wake   chan struct{} // holds one: the subscription has begun, or failed
	again  atomic.Bool   // it has since the note was last looked after
	deaf   bool
}

// Watch implements driver.Watcher.
func (d *Driver) Watch(name string, f func()) (stop func()) { return d.watches.Watch(name, f) }

// follow is what driver.Watchers wants of it.
func (d *Driver) follow(name string, f func()) (stop func()) {
	w, b := &d.watches, d.signals
	if !b.push {
		return func() {}
	}
	ctx, end := context.WithCancel(b.life)
	x := &watch{d: d, name: name, tell: f, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	w.mu.Lock()
	if w.all == nil {
		w.all = map[string]*watch{}
	}
	x.before, w.all[name] = w.all[name], x
	w.mu.Unlock()
	if !b.begin(func() { x.run(ctx) }) {
		x.over()
	}
	return end
}

// run has changes of the name told until ctx ends.
func (x *watch) run(ctx context.Context) {
	defer x.over()
	if x.before != nil {
		<-x.before.ended
		x.before = nil
	}
	s := x.subscribe(ctx, x.d.sender.Cluster())
	defer func() { <-s.done }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for fails := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		case <-timer.C:
		}
		if s.Sharded && s.barred.Load() { // before Redis 7.0, or without the right
			s.end()
			<-s.done
			s = x.subscribe(ctx, false)
			continue
		}
		news := x.again.Swap(false)
		if news {
			fails = 0
		}
		hears := s.up.Load()
		if hears {
			var missing bool
			missing, hears = x.note(ctx, s.Sharded)
			news = news || missing
		}
		if x.hears(hears) || news {
			x.tell()
		}
		if fails++; hears {
			fails = 0
			timer.Reset(backoff.Early(watchKeep))
		} else {
			timer.Reset(backoff.Late(backoff.Doubled(watchAgain, fails, watchAgainMax)))
		}
	}
}

func (x *watch) subscribe(ctx context.Context, sharded bool) *subscription {
	rouse := func() {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
	c := Channel{Name: watchChannel(x.d.Prefix, x.name), Sharded: sharded, Brief: true}
	return x.d.signals.subscribe(ctx, c, ear{
		heard:  func(string) { x.tell() },
		begun:  func(bool) { x.again.Store(true); rouse() },
		failed: rouse,
	})
}

// note has the scripts tell of changes from now on. missing says that they did not until
// now.
func (x *watch) note(ctx context.Context, sharded bool) (missing, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	call := x.d.watchCall(x.name, wayOf(sharded))
	p := x.d.twice(ctx, func() Reply { return x.d.run(ctx, Watch, call) })
	return p.Int == 2, p.Err == nil && p.Int > 0
}

func wayOf(sharded bool) byte {
	if sharded {
		return waySlot
	}
	return wayPlain
}

// hears notes whether changes are told now, and reports whether that is new: then
// everybody looks, and goes by what is true from now on.
func (x *watch) hears(can bool) (turned bool) {
	if can != x.deaf {
		return false
	}
	x.deaf = !can
	if x.deaf {
		x.d.watches.deaf.Add(1)
	} else {
		x.d.watches.deaf.Add(-1)
	}
	return true
}

func (x *watch) over() {
	x.hears(true)
	w := &x.d.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	close(x.ended)
	if w.all[x.name] == x {
		delete(w.all, x.name)
	}
}
