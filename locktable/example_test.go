package locktable_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A store is a table of names and bytes, as in a database. Its mutex is the transaction.
// It has one client here; with several, it would have their inboxes.
type store struct {
	client *locktable.Driver

	mu   sync.Mutex // protects rows
	rows map[string][]byte
}

func (s *store) Update(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	for i, step := range steps {
		signals, err := s.step(ctx, i, step, f)
		if err != nil {
			return err
		}
		for _, signal := range signals { // after the entry is stored, and without the mutex
			s.client.Deliver(signal.Signal)
		}
	}
	return nil
}

func (s *store) step(ctx context.Context, i int, step locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant)) ([]locktable.Signal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.HasEnd && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e, err := s.load(step.Name)
	if err != nil {
		return nil, err
	}
	f(i, e, locktable.At(time.Now()))
	if e.Changed {
		s.rows[step.Name] = e.Append(nil)
	}
	return e.Signals, nil
}

func (s *store) Read(_ context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.load(name)
	return e, locktable.At(time.Now()), err
}

func (s *store) load(name string) (*locktable.Entry, error) {
	if b, ok := s.rows[name]; ok {
		return locktable.Decode(b)
	}
	return &locktable.Entry{}, nil
}

func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		s.mu.Lock()
		names := slices.Sorted(maps.Keys(s.rows))
		s.mu.Unlock()
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			e, now, err := s.Read(ctx, name)
			if !yield(locktable.Row{Name: name, Entry: e, Now: now}, err) {
				return
			}
		}
	}
}

func (s *store) Properties() driver.Properties {
	return driver.Properties{Backend: "store", Clock: driver.ClockProcess, FenceSurvives: driver.FencesRiseInProcess, MinTTL: driver.MinTTL, PushesGrants: true}
}

func (s *store) Close() error { return nil }

// A backend needs a table that can change one row atomically. It also has to delete idle
// rows, and to pass the suite in drivertest.
func ExampleNew() {
	ctx := context.Background()
	s := &store{rows: map[string][]byte{}}
	s.client = locktable.New(s, "the only one")
	locks, err := pawl.New(s.client, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	first, _ := locks.RWMutex("catalog").RLock(ctx)
	time.AfterFunc(time.Millisecond, func() { _ = first.Release(ctx) })
	writer, err := locks.RWMutex("catalog").Lock(ctx) // waits for the reader
	fmt.Println(err, writer.Fence() > first.Fence())
	fmt.Println(writer.Release(ctx))
	// Output:
	// <nil> true
	// <nil>
}
