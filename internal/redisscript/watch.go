package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
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
	deaf atomic.Int64 // how many names are watched of which nothing can be heard now

	mu    sync.Mutex               // protects ended
	ended map[string]chan struct{} // of the last watch of each name: closed when it has
}

// A watch is a name that somebody watches.
type watch struct {
	d       *Driver
	name    string
	tell    func()
	sharded bool // its channel is
}

// Watch implements driver.Watcher.
func (d *Driver) Watch(name string, f func()) (stop func()) { return d.watches.Watch(name, f) }

// follow is what driver.Watchers wants of it. The watch before it of the same name ends
// first, for it gives up the same channel.
func (d *Driver) follow(name string, f func()) (stop func()) {
	w, b := &d.watches, d.signals
	if !b.push {
		return func() {}
	}
	ctx, end := context.WithCancel(b.life)
	ended := make(chan struct{})
	w.mu.Lock()
	if w.ended == nil {
		w.ended = map[string]chan struct{}{}
	}
	before := w.ended[name]
	w.ended[name] = ended
	w.mu.Unlock()
	x := &watch{d: d, name: name, tell: f, sharded: d.sender.Cluster()}
	began := b.begin(func() {
		defer w.over(name, ended)
		if before != nil {
			<-before
		}
		engine.Subscription{
			Run:        x.listen,
			Turned:     func(bool) { f() }, // something was not heard, or will not be
			Deaf:       &w.deaf,
			FirstPause: watchAgain, LongestPause: watchAgainMax,
		}.Keep(ctx)
	})
	if !began {
		w.over(name, ended)
	}
	return end
}

func (w *watching) over(name string, ended chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(ended)
	if w.ended[name] == ended {
		delete(w.ended, name)
	}
}

// listen has changes of the name told for as long as that goes well.
func (x *watch) listen(ctx context.Context, hears func()) {
	ctx, cancel := context.WithCancel(ctx)
	confirmed := make(chan struct{}, 1)
	var noting sync.WaitGroup
	noting.Go(func() {
		defer cancel()
		x.keepNoted(ctx, confirmed, hears)
	})
	c := Channel{Name: watchChannel(x.d.Prefix, x.name), Sharded: x.sharded, Brief: true}
	err := x.d.sender.Receive(ctx, c, func() {
		select {
		case confirmed <- struct{}{}:
		default:
		}
	}, func(string) { x.tell() })
	cancel()
	noting.Wait()
	x.sharded = x.sharded && !bars(err) // before Redis 7.0, or without the right
}

// keepNoted notes that the name is watched whenever the server has confirmed the
// subscription, and as long as that lasts. It returns when it cannot.
func (x *watch) keepNoted(ctx context.Context, confirmed <-chan struct{}, hears func()) {
	for wait, late := serverTimeout, true; ; wait, late = backoff.Early(watchKeep), false {
		news := false
		select {
		case <-ctx.Done():
			return
		case <-confirmed:
			news = true
		case <-time.After(wait):
			if late {
				return // a server that never confirms
			}
		}
		missing, ok := x.note(ctx)
		if !ok {
			return
		}
		if news || missing {
			hears()
		}
	}
}

// note has the scripts tell of changes from now on. missing says that they did not until
// now.
func (x *watch) note(ctx context.Context) (missing, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	call := x.d.watchCall(x.name, wayOf(x.sharded))
	p := x.d.twice(ctx, func() Reply { return x.d.run(ctx, Watch, call) })
	return p.Int == 2, p.Err == nil && p.Int > 0
}

func wayOf(sharded bool) byte {
	if sharded {
		return waySlot
	}
	return wayPlain
}
