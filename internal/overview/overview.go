package overview

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
)

// Options are the settings of an Overview. The zero value and nil work.
type Options struct {
	// BackgroundInterval is the time between two scans while there is no viewer, for
	// History. The default, 0, means no such scans.
	BackgroundInterval time.Duration

	// Prefix restricts all scans to the names that begin with it. Default: all names.
	Prefix string
}

// The limits for reading the backend. On an idle backend a scan is one command.
const (
	minPause      = 600 * time.Millisecond // between two scans
	maxPause      = 15 * time.Second       // between two scans, however many names there are
	pausePerName  = 2 * time.Millisecond   // for each name (at most 500 names a second), until the pause is maxPause
	pauseFactor   = 20                     // a pause takes at least this many times as long as the scan
	scanTimeout   = 5 * time.Second        // a scan that takes longer has failed
	readTimeout   = 2 * time.Second        // a read of one name that takes longer has failed
	readInterval  = 50 * time.Millisecond  // between two batches of changed names
	readBatchSize = 16                     // names in such a batch
	maxWatched    = 256                    // names watched at once
	maxNames      = 100_000                // in a View; it leaves out the rest
	maxShownAge   = 5 * time.Second        // a shown name of this age is read again between two scans
	failurePause  = time.Second            // the pause after a scan that failed
)

// Overview has the names of a client's backend. Many goroutines may use it.
type Overview struct {
	client  *pawl.Client
	options Options
	watcher driver.Watcher // or nil
	history *History
	wake    chan struct{} // capacity 1

	mu           sync.Mutex // protects the fields below
	view         *View
	viewReplaced chan struct{} // closed when view is replaced
	viewers      map[*Viewer]struct{}
	changed      map[string]struct{} // names that have changed since they were read
}

// New returns an overview of the client's backend. It reads nothing until Run is called.
func New(c *pawl.Client, o *Options) *Overview {
	s := &Overview{
		client: c, wake: make(chan struct{}, 1),
		history:      &History{Began: time.Now(), names: map[string]*nameRecord{}, order: list.New()},
		viewReplaced: make(chan struct{}), viewers: map[*Viewer]struct{}{}, changed: map[string]struct{}{},
	}
	if o != nil {
		s.options = *o
	}
	s.watcher, _ = driver.As[driver.Watcher](access.Driver(c))
	s.view = &View{Properties: c.Properties(), pageCache: &pageCache{}}
	return s
}

// View returns the last view. It is never nil: before the first scan it is empty, and its
// ScannedAt is zero.
func (s *Overview) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// History returns the events of names since New.
func (s *Overview) History() *History { return s.history }

// Client returns the client that was given to New.
func (s *Overview) Client() *pawl.Client { return s.client }

// Latest returns a view at most age old, or the last view if ctx ends or a scan fails.
func (s *Overview) Latest(ctx context.Context, age time.Duration) *View {
	since := time.Now().Add(-age)
	v := s.View()
	if v.ScannedAt.After(since) {
		return v
	}
	viewer := s.Join()
	defer viewer.Leave()
	for !v.ScannedAt.After(since) {
		next, err := viewer.Next(ctx, v)
		if err != nil {
			return v
		}
		if v = next; v.Err != nil {
			return v // waiting would take as long as the outage
		}
	}
	return v
}

// Viewers returns the number of viewers.
func (s *Overview) Viewers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.viewers)
}

// A Viewer reads views. The Overview reads the backend while there is any viewer.
type Viewer struct {
	overview *Overview
	shown    []string // protected by overview.mu
}

// Join adds a viewer, until Leave is called.
func (s *Overview) Join() *Viewer {
	v := &Viewer{overview: s}
	s.updateAndWake(func() { s.viewers[v] = struct{}{} })
	return v
}

// Show sets the names that the viewer shows, so that the backend pushes their changes. It
// does that for at most 256 names of all viewers together.
func (v *Viewer) Show(names []string) { v.overview.updateAndWake(func() { v.shown = names }) }

// Next waits for a view that is newer than seen. The error is ctx's.
func (v *Viewer) Next(ctx context.Context, seen *View) (*View, error) {
	for {
		v.overview.mu.Lock()
		view, replaced := v.overview.view, v.overview.viewReplaced
		v.overview.mu.Unlock()
		if view != seen {
			return view, nil
		}
		select {
		case <-replaced:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Leave removes the viewer. A second Leave does nothing.
func (v *Viewer) Leave() { v.overview.updateAndWake(func() { delete(v.overview.viewers, v) }) }

// updateAndWake calls f under mu, and wakes Run. It does not block.
func (s *Overview) updateAndWake(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Refresh marks a name as changed, so that Run reads it soon. It does not block.
func (s *Overview) Refresh(name string) { s.updateAndWake(func() { s.changed[name] = struct{}{} }) }

// publish shows a new view to all viewers.
func (s *Overview) publish(v *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = v
	close(s.viewReplaced)
	s.viewReplaced = make(chan struct{})
}

// namesInDemand reports whether there are viewers, and returns the names that they show.
// If there are too many names, it prefers those that are watched already. A new choice
// each time would restart watches without need, and each new watch counts as a change.
func (s *Overview) namesInDemand(watched map[string]func()) (hasViewers bool, shown map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown = map[string]struct{}{}
	for _, isWatched := range []bool{true, false} {
		for v := range s.viewers {
			for _, name := range v.shown {
				if (watched[name] != nil) == isWatched && len(shown) < maxWatched {
					shown[name] = struct{}{}
				}
			}
		}
	}
	return len(s.viewers) > 0, shown
}
