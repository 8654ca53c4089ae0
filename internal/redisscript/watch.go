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

// To watch a name, the driver subscribes to its channel. The watch script then stores a
// note in the state of the name: until when the name is watched. The other scripts
// publish changes only if the state has such a note. So a name that is not watched costs
// no further call.
//
// The note expires, and the driver renews it before that. If the note is missing (a
// client deleted the name, or a replica without the note took over), the driver may have
// missed changes, and notifies the watchers.
const (
	watchNoteTTL      = time.Minute
	watchNoteInterval = 20 * time.Second // the driver renews the note at this interval, or a little earlier
)

// watcherState is the state of a driver's watchers.
type watcherState struct {
	driver.Watchers
	watchesDown atomic.Int64 // the number of watched names whose subscription is down
	ended       sync.Map     // from a name to a channel that is closed when its last watch has ended
}

// A watch is a watched name.
type watch struct {
	d       *Driver
	name    string
	notify  func()
	sharded bool // its channel belongs to a slot
}

// Watch implements driver.Watcher.
func (d *Driver) Watch(name string, f func()) (stop func()) { return d.watches.Watch(name, f) }

// followName watches a name; driver.Watchers calls it. It waits for the end of the
// previous watch of the name, because that one unsubscribes from the same channel.
func (d *Driver) followName(name string, f func()) (stop func()) {
	w, b := &d.watches, d.signals
	if d.NoPush {
		return func() {}
	}
	ctx, end := context.WithCancel(b.life)
	ended := make(chan struct{})
	last, _ := w.ended.Swap(name, ended)
	x := &watch{d: d, name: name, notify: f, sharded: d.client.Cluster}
	b.loops.Go(func() {
		defer w.ended.CompareAndDelete(name, ended)
		defer close(ended)
		if before, _ := last.(chan struct{}); before != nil {
			<-before
		}
		engine.Subscription{
			Run:          x.listen,
			StateChanged: func(bool) { f() }, // the driver has missed changes, or may miss them from now on
			Down:         &w.watchesDown,
			FirstPause:   minRewatchPause, LongestPause: maxRewatchPause,
		}.Keep(ctx)
	})
	return end
}

// listen reports each change of the name, while the subscription and the note last.
func (x *watch) listen(ctx context.Context, subscribed func()) {
	ctx, cancel := context.WithCancel(ctx)
	confirmed := make(chan struct{}, 1)
	var noteKeeper sync.WaitGroup
	noteKeeper.Go(func() {
		defer cancel()
		x.keepNote(ctx, confirmed, subscribed)
	})
	c := Channel{Name: watchChannel(x.d.Prefix, x.name), Sharded: x.sharded, Temporary: true}
	err := x.d.client.Subscribe(ctx, c, func() {
		select {
		case confirmed <- struct{}{}:
		default:
		}
	}, func(string) { x.notify() })
	cancel()
	noteKeeper.Wait()
	x.sharded = x.sharded && !cannotSubscribe(err) // next time a plain channel, if the server refuses sharded ones
}

// keepNote writes the note whenever the server has confirmed the subscription, and
// renews it as long as the subscription lasts. It returns when it cannot write the note.
func (x *watch) keepNote(ctx context.Context, confirmed <-chan struct{}, subscribed func()) {
	for wait, first := serverTimeout, true; ; wait, first = backoff.JitterDown(watchNoteInterval), false {
		isConfirmed := false
		select {
		case <-ctx.Done():
			return
		case <-confirmed:
			isConfirmed = true
		case <-time.After(wait):
			if first {
				return // the server does not confirm the subscription
			}
		}
		missing, ok := x.storeNote(ctx)
		if !ok {
			return
		}
		if isConfirmed || missing {
			subscribed()
		}
	}
}

// storeNote stores the note, so that the scripts publish changes from now on. missing
// reports that there was no note before.
func (x *watch) storeNote(ctx context.Context) (missing, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	call := x.d.watchCall(x.name, x.sharded)
	p := x.d.resendIfLost(ctx, func() Reply { return run(ctx, x.d.conn, Watch, call) })
	return p.Int == 2, p.Err == nil && p.Int > 0
}
