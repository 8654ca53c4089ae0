package locktable_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// shelf is the plainest table of bytes, with a fault for each test to set.
type shelf struct {
	mu      sync.Mutex
	rows    map[string][]byte
	now     locktable.Instant
	drivers map[string]*locktable.Driver

	err       error  // every call fails with it
	twice     bool   // the first run of a step is thrown away, as when a compare-and-swap fails
	meanwhile func() // what happens while a step waits for its turn
	updates   int    // calls of Update
	closes    int
}

func newShelf() *shelf {
	return &shelf{rows: map[string][]byte{}, now: start, drivers: map[string]*locktable.Driver{}}
}

func (s *shelf) client(inbox string) *locktable.Driver {
	s.drivers[inbox] = locktable.New(s, inbox)
	return s.drivers[inbox]
}

// late is a ctx that ends while the next step waits for its turn.
func (s *shelf) late(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	s.meanwhile = func() {
		s.meanwhile = nil
		cancel()
	}
	return ctx, cancel
}

func (s *shelf) load(name string) (*locktable.Entry, error) {
	if s.rows[name] == nil {
		return &locktable.Entry{}, nil
	}
	return locktable.Decode(s.rows[name])
}

func (s *shelf) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	var signals []locktable.Signal
	defer func() {
		for _, signal := range signals {
			s.drivers[signal.Inbox].Deliver(signal.Signal)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates++
	for i, step := range steps {
		if s.meanwhile != nil {
			s.meanwhile()
		}
		if step.HasEnd && ctx.Err() != nil {
			return ctx.Err()
		}
		name := step.Name
		if s.err != nil {
			return s.err
		}
		if s.twice {
			lost, err := s.load(name)
			if err != nil {
				return err
			}
			f(i, lost, s.now)
			s.now++
		}
		e, err := s.load(name)
		if err != nil {
			return err
		}
		if f(i, e, s.now); e.Changed {
			s.rows[name] = e.Append(nil)
		}
		signals = append(signals, e.Signals...)
	}
	return ctx.Err()
}

func (s *shelf) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.load(name)
	return e, s.now, errors.Join(s.err, err)
}

func (s *shelf) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.rows)) { // all of them: a table may be generous
			e, now, err := s.Read(ctx, name)
			if s.err != nil {
				yield(locktable.Row{}, s.err)
				return
			}
			if !yield(locktable.Row{Name: name, Entry: e, Now: now}, err) {
				return
			}
		}
	}
}

func (s *shelf) Properties() driver.Properties { return driver.Properties{Backend: "shelf"} }

func (s *shelf) Close() error {
	s.closes++
	return io.ErrClosedPipe
}

func lease(who string) driver.LeaseRef {
	return driver.LeaseRef{Name: "job", Token: tokenOf(who), TTL: ttl}
}

// everything calls each method that talks to the table once, and returns what they
// answer.
func everything(ctx context.Context, d *locktable.Driver) map[string]error {
	out := map[string]error{}
	_, out["acquire"] = d.Acquire(ctx, *mutex("a"))
	_, out["renew"] = d.Renew(ctx, []driver.LeaseRef{lease("a")})
	out["release"] = d.Release(ctx, lease("a"))
	out["break"] = d.Break(ctx, "job", 1, 0, driver.Owner{})
	_, out["read"] = d.Inspect(ctx, "job")
	for _, err := range d.List(ctx, "job") {
		out["list"] = err
	}
	return out
}

// closing is a table that is closed in the midst of an update.
type closing struct {
	*shelf
	meanwhile func() error
}

func (c *closing) Update(context.Context, []locktable.Step, func(int, *locktable.Entry, locktable.Instant)) error {
	return errors.Join(c.meanwhile(), errors.New("the connection was closed"))
}

// memory is a table that keeps the entry itself, not its bytes.
type memory struct {
	*shelf
	e *locktable.Entry
}

func (m memory) Update(_ context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for i := range steps {
		f(i, m.e, m.now)
	}
	return nil
}
