package locktable_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/locktable"
)

// A groupedStore is a store whose transaction can change several rows.
type groupedStore struct{ *store }

func (s *groupedStore) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	signals, err := s.runAll(ctx, steps, f)
	for _, signal := range signals {
		s.client.Deliver(signal.Signal)
	}
	return err
}

func (s *groupedStore) runAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) (signals []locktable.Signal, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for i, step := range steps {
		e, err := s.load(step.Name)
		if err != nil {
			return nil, err
		}
		continues := f(i, e, locktable.At(time.Now()))
		if e.Changed {
			s.rows[step.Name] = e.Append(nil)
		}
		signals = append(signals, e.Signals...)
		if !continues {
			break
		}
	}
	return signals, nil
}

// A backend whose transaction can change several rows grants all names of pawl.All in one
// step.
func ExampleNewGrouped() {
	ctx := context.Background()
	s := &groupedStore{&store{rows: map[string][]byte{}}}
	d := locktable.NewGrouped(s, "the only one")
	s.client = d.Driver
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	both, err := pawl.All(locks.Mutex("from"), locks.Mutex("to")).TryLock(ctx)
	fmt.Println(err)
	fmt.Println(both.Release(ctx))
	// Output:
	// <nil>
	// <nil>
}
