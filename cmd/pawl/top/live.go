// Package top is what `pawl top` shows on a terminal: a model of what is seen, which keys
// change, and which is drawn. live.go brings it together with the backend.
package top

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/pause"
)

// Options say what the view shows, and where it gets that from.
type Options struct {
	Open   func(ctx context.Context) (*pawl.Client, error) // asked again each second while there is no client
	Close  func(c *pawl.Client) error                      // ends a client that was opened; it holds nothing
	Prefix string                                          // of the names

	AllowBreak bool          // leases can be broken
	By         string        // who breaks them
	Delay      time.Duration // how long a name stays closed whose lease is broken
	Idle       string        // why there is no client yet, for people
}

// Run shows what there is until a key or a signal ends it, or the terminal is gone. It
// closes the client, which may be nil: then it waits until there is one.
func Run(ctx context.Context, s *screen.Screen, c *pawl.Client, o Options) error {
	l := &liveView{Options: o, screen: s, model: newModel(o.Delay)}
	l.model.idle, l.model.readOnly = o.Idle, !o.AllowBreak
	return l.run(ctx, c)
}

// A liveView brings together the screen, the model and the backend. One goroutine has the
// model; nothing in it waits for the backend or for the terminal.
type liveView struct {
	Options
	screen *screen.Screen
	model  *model

	all    *overview.Overview // nil while there is no client
	viewer *overview.Viewer
	shown  []string
	opened chan *pawl.Client
	views  chan *overview.View
	broken chan outcome
}

// An outcome is that of an attempt to break a lease.
type outcome struct {
	of  *question
	err error
}

// The screen is drawn anew that often, for times go on.
const tick = 500 * time.Millisecond

// breakFor bounds an attempt to break a lease.
const breakFor = 10 * time.Second

func (l *liveView) run(ctx context.Context, c *pawl.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.opened, l.views, l.broken = make(chan *pawl.Client), make(chan *overview.View), make(chan outcome)
	if c != nil {
		l.start(ctx, c)
	} else {
		l.screen.Go(func() { l.open(ctx) })
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		l.draw()
		select {
		case c := <-l.opened:
			l.start(ctx, c)
		case v := <-l.views:
			l.model.see(v)
		case o := <-l.broken:
			l.model.broke(o.of, o.err)
		case <-ticker.C:
		case e := <-l.screen.Events():
			if e.Gone != nil || e.Key != "" && l.obey(ctx, l.model.press(e.Key, e.Pasted)) {
				cancel()
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	if l.all == nil {
		return nil
	}
	// The terminal is given back first: the client may take its time.
	err := l.screen.Close()
	_ = l.Close(l.all.Client())
	return err
}

// draw shows the model, and has changes of what is seen pushed.
func (l *liveView) draw() {
	width, height := l.screen.Size()
	l.screen.Draw(l.model.draw(width, height, time.Now()))
	if names := l.model.shown(); l.viewer != nil && !slices.Equal(names, l.shown) {
		l.shown = names
		l.viewer.Show(names)
	}
}

// start looks at a backend from now on.
func (l *liveView) start(ctx context.Context, c *pawl.Client) {
	l.all = overview.New(c, &overview.Options{Prefix: l.Prefix})
	l.model.where = c.Properties().Where
	l.viewer = l.all.Join()
	l.model.see(l.all.View())
	l.screen.Go(func() { l.all.Run(ctx) })
	l.screen.Go(func() {
		for v := l.all.View(); ; {
			next, err := l.viewer.Next(ctx, v)
			if err != nil {
				return
			}
			v = next
			select {
			case l.views <- v:
			case <-ctx.Done():
				return
			}
		}
	})
}

// open waits until there is something to look at.
func (l *liveView) open(ctx context.Context) {
	for pause.For(ctx, time.Second) == nil {
		c, err := l.Open(ctx)
		if err != nil {
			continue
		}
		select {
		case l.opened <- c:
		case <-ctx.Done():
			_ = l.Close(c)
		}
		return
	}
}

// obey does what a key wants, and reports whether that is the end.
func (l *liveView) obey(ctx context.Context, o order) (ends bool) {
	if o.suspend {
		l.screen.Suspend()
	}
	if q := o.breaks; q != nil {
		l.screen.Go(func() { l.breakLease(ctx, q) })
	}
	return o.quit
}

// breakLease breaks the lease that was asked about, and no other.
func (l *liveView) breakLease(ctx context.Context, q *question) {
	bounded, cancel := context.WithTimeout(ctx, breakFor)
	defer cancel()
	err := l.all.Client().Break(bounded, q.name, q.fence, l.model.delay, pawl.WithBy(l.By))
	l.all.Refresh(q.name)
	select {
	case l.broken <- outcome{q, err}:
	case <-ctx.Done():
	}
}
