// Package top shows `pawl top` on a terminal. A model has the state of the view; keys
// change the model, and draw draws it. live.go connects the model to the backend.
package top

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/overview"
)

// Options are the client and the settings of the view.
type Options struct {
	Open   func(ctx context.Context) (*pawl.Client, error) // called each second while there is no client
	Close  func(c *pawl.Client) error                      // closes an opened client, which holds nothing
	Prefix string                                          // the beginning of the names to show

	AllowBreak   bool          // leases can be broken
	By           string        // who breaks them
	Delay        time.Duration // the Delay of pawl.BreakOptions
	NoClientText string        // why there is no client yet, for people
}

// Run shows the names until a key or a signal ends it, or the terminal is gone. It closes
// the client, which may be nil: then Run waits until Open returns one.
func Run(ctx context.Context, s *screen.Screen, c *pawl.Client, o Options) error {
	l := &liveView{Options: o, screen: s, model: newModel(o.Delay), changes: make(chan func())}
	l.model.noClientText, l.model.readOnly = o.NoClientText, !o.AllowBreak
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c != nil {
		l.startOverview(ctx, c)
	} else {
		l.screen.Go(func() { l.openClient(ctx) })
	}
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		l.draw()
		select {
		case change := <-l.changes:
			change()
		case <-ticker.C:
		case e := <-l.screen.Events():
			var a action
			if e.Key != "" {
				a = l.model.press(e.Key, e.Pasted)
			}
			if a.suspend {
				l.screen.Suspend(true)
			}
			if q := a.toBreak; q != nil {
				l.screen.Go(func() { l.breakLease(ctx, q) })
			}
			if e.Gone != nil || a.quit {
				cancel()
			}
		case <-ctx.Done():
		}
	}
	if l.overview == nil {
		return nil
	}
	// Close the terminal first, because the client may take long.
	err := l.screen.Close()
	_ = l.Close(l.overview.Client())
	return err
}

// A liveView connects the screen, the model and the backend. One goroutine owns the
// model, and never waits for the backend or for the terminal.
type liveView struct {
	Options
	screen *screen.Screen
	model  *model

	overview *overview.Overview // nil while there is no client
	viewer   *overview.Viewer
	shown    []string
	changes  chan func() // from other goroutines; the one that owns the model calls them
}

// changeModel passes f to the goroutine that owns the model, unless ctx ends.
func (l *liveView) changeModel(ctx context.Context, f func()) error {
	select {
	case l.changes <- f:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// redrawInterval is the time between two frames, in which the shown times change.
const redrawInterval = 500 * time.Millisecond

// breakTimeout limits the time of an attempt to break a lease.
const breakTimeout = 10 * time.Second

// draw shows the model, and subscribes to changes of the names on the screen.
func (l *liveView) draw() {
	width, height := l.screen.Size()
	l.screen.Draw(l.model.draw(width, height, time.Now()))
	if names := l.model.shownNames(); l.viewer != nil && !slices.Equal(names, l.shown) {
		l.shown = names
		l.viewer.Show(names)
	}
}

func (l *liveView) startOverview(ctx context.Context, c *pawl.Client) {
	l.overview = overview.New(c, &overview.Options{Prefix: l.Prefix})
	l.model.backend = c.Properties().Location
	l.viewer = l.overview.Join()
	l.model.setView(l.overview.View())
	l.screen.Go(func() { l.overview.Run(ctx) })
	l.screen.Go(func() {
		for v := l.overview.View(); ; {
			next, err := l.viewer.Next(ctx, v)
			if err != nil || l.changeModel(ctx, func() { l.model.setView(next) }) != nil {
				return
			}
			v = next
		}
	})
}

// openClient waits until a client can be opened.
func (l *liveView) openClient(ctx context.Context) {
	for backoff.Wait(ctx, time.Second) == nil {
		c, err := l.Open(ctx)
		if err != nil {
			continue
		}
		if l.changeModel(ctx, func() { l.startOverview(ctx, c) }) != nil {
			_ = l.Close(c)
		}
		return
	}
}

// breakLease breaks the lease in question, and no other.
func (l *liveView) breakLease(ctx context.Context, q *question) {
	bounded, cancel := context.WithTimeout(ctx, breakTimeout)
	defer cancel()
	err := l.overview.Client().Break(bounded, q.name, q.Fence, &pawl.BreakOptions{Delay: q.delay, By: l.By})
	l.overview.Refresh(q.name)
	_ = l.changeModel(ctx, func() { l.model.showBreakResult(q, err) })
}
