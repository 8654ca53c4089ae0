package watching

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// backend marks all names, unless fail returns an error.
type backend struct {
	setState func(bool)
	ended    int // the number of subscriptions that ended

	mu     sync.Mutex // protects the fields below
	fail   func(ctx context.Context, names []string) error
	tries  []int // the number of names in each
	tokens map[string]driver.Token
}

func (b *backend) subscribe(f func(up bool)) (stop func()) {
	b.setState = f
	return func() { b.ended++ }
}

func (b *backend) mark(ctx context.Context, tokens []driver.Token, names []string) (known, ok []bool, err error) {
	b.mu.Lock()
	fail := b.fail
	b.tries = append(b.tries, len(names))
	b.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, names); err != nil {
			return nil, nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, name := range names {
		known, ok = append(known, b.tokens[name] == tokens[i]), append(ok, true)
		b.tokens[name] = tokens[i]
	}
	return known, ok, nil
}

func (b *backend) setFailure(fail func(ctx context.Context, names []string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail, b.tries = fail, nil
}

// triesSinceSet returns the number of names in each try since setFailure.
func (b *backend) triesSinceSet() []int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tries)
}

// watchNames watches names. calls returns the number of new calls for the first name.
func watchNames(names ...string) (w *Watching, b *backend, calls func() int) {
	b = &backend{tokens: map[string]driver.Token{}}
	w = New(b.subscribe, b.mark)
	n := 0
	w.Watch(names[0], func() { n++ })
	for _, name := range names[1:] {
		w.Watch(name, func() {})
	}
	synctest.Wait()
	return w, b, func() int {
		synctest.Wait()
		calls := n
		n = 0
		return calls
	}
}

func TestNamesAreMarkedTogetherAndChangesReported(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, calls := watchNames("a", "b", "c")
		defer w.Close()
		b.setState(true)
		if n := calls(); n == 0 || w.MissesChanges() || !slices.Equal(b.triesSinceSet(), []int{3}) {
			t.Errorf("%d calls, misses changes: %v, tries of %v names; want one try of all names", n, w.MissesChanges(), b.triesSinceSet())
		}
		w.Notify(b.tokens["a"])
		w.Notify(b.tokens["b"])
		w.Notify(driver.NewToken())
		if n := calls(); n != 1 {
			t.Errorf("%d calls for one change", n)
		}
		b.setState(false)
		if n := calls(); n != 1 || !w.MissesChanges() {
			t.Errorf("%d calls after signals ceased, misses changes: %v", n, w.MissesChanges())
		}
	})
}

func TestTheSubscriptionEndsWithTheLastWatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &backend{tokens: map[string]driver.Token{}}
		w := New(b.subscribe, b.mark)
		defer w.Close()
		for i := range 2 {
			stop := w.Watch("a", func() {})
			synctest.Wait()
			b.setState(true)
			synctest.Wait()
			stop()
			if synctest.Wait(); b.ended != i+1 {
				t.Fatalf("%d subscriptions ended; want %d", b.ended, i+1)
			}
		}
	})
}

// A damaged name costs the other names one more try each, but they are marked.
func TestTheOtherNamesAreMarkedBesideADamagedOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, _ := watchNames("a", "bad", "c")
		defer w.Close()
		b.setFailure(func(_ context.Context, names []string) error {
			if slices.Contains(names, "bad") {
				return errors.New("damaged")
			}
			return nil
		})
		b.setState(true)
		if got := b.triesSinceSet(); !slices.Equal(got, []int{3, 1, 1, 1}) || len(b.tokens) != 2 || !w.MissesChanges() {
			t.Errorf("tries of %v names, marked are %v, misses changes: %v", got, b.tokens, w.MissesChanges())
		}
	})
}

func TestASingleNameIsNotTriedAgainAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, calls := watchNames("a")
		defer w.Close()
		b.setFailure(func(context.Context, []string) error { return errors.New("disk full") })
		b.setState(true)
		if got := b.triesSinceSet(); !slices.Equal(got, []int{1}) || calls() == 0 || !w.MissesChanges() {
			t.Errorf("tries of %v names, misses changes: %v", got, w.MissesChanges())
		}
		time.Sleep(10 * time.Minute)
		if n := len(b.triesSinceSet()); n < 6 || n > 30 {
			t.Errorf("%d tries in ten minutes", n)
		}
	})
}

// While a backend hangs, even 100 watches soon learn that changes are not reported.
func TestAHangingBackendDoesNotDelayEachName(t *testing.T) {
	gone := errors.New("the connection is gone")
	for what, fail := range map[string]func(ctx context.Context, names []string) error{
		"until the end of ctx": func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return gone
		},
		"until a timeout of its own": func(context.Context, []string) error {
			time.Sleep(markTimeout - 1)
			return errors.Join(gone, context.DeadlineExceeded)
		},
		"after the first try": func(ctx context.Context, names []string) error {
			if len(names) == 1 {
				<-ctx.Done()
			}
			return gone
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				names := slices.Repeat([]string{"a"}, 100)
				w, b, calls := watchNames(names...)
				defer w.Close()
				b.setFailure(fail)
				b.setState(true)
				synctest.Wait()
				time.Sleep(2 * markTimeout)
				n, got := calls(), b.triesSinceSet()
				if n == 0 || !w.MissesChanges() {
					t.Errorf("%d calls, misses changes: %v", n, w.MissesChanges())
				}
				for i, names := range got {
					if names != []int{100, 1}[i%2] {
						t.Errorf("tries of %v names; want a try of one name after each try of all", got[:min(len(got), 8)])
						break
					}
				}
				b.setFailure(nil)
				time.Sleep(10 * time.Second)
				if n := calls(); n == 0 || w.MissesChanges() {
					t.Errorf("after the backend recovered: %d calls, misses changes: %v", n, w.MissesChanges())
				}
			})
		})
	}
}

// Close does not wait for a hanging backend.
func TestCloseCancelsATryUnderWay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, _ := watchNames("a", "b")
		b.setFailure(func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		b.setState(true)
		synctest.Wait()
		began := time.Now()
		if w.Close(); time.Since(began) > 0 || len(b.triesSinceSet()) > 2 {
			t.Errorf("Close took %v, with tries of %v names", time.Since(began), b.triesSinceSet())
		}
	})
}
