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

// backend has names marked, until a test says otherwise.
type backend struct {
	setState func(bool)
	ended    int // how often a client stopped listening

	mu     sync.Mutex // protects what follows
	fails  func(ctx context.Context, names []string) error
	tries  []int // the number of names in each
	tokens map[string]driver.Token
}

func (b *backend) subscribe(f func(up bool)) (stop func()) {
	b.setState = f
	return func() { b.ended++ }
}

func (b *backend) mark(ctx context.Context, tokens []driver.Token, names []string) (known, ok []bool, err error) {
	b.mu.Lock()
	fails := b.fails
	b.tries = append(b.tries, len(names))
	b.mu.Unlock()
	if fails != nil {
		if err := fails(ctx, names); err != nil {
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

func (b *backend) set(fails func(ctx context.Context, names []string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.tries = fails, nil
}

// tried returns the number of names in each try since set.
func (b *backend) tried() []int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tries)
}

// follow watches names. told returns how many changes of the first name were reported.
func follow(names ...string) (w *Watching, b *backend, told func() int) {
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
		was := n
		n = 0
		return was
	}
}

func TestNamesAreMarkedTogetherAndHeardOf(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, told := follow("a", "b", "c")
		defer w.Close()
		b.setState(true)
		if n := told(); n == 0 || w.MissesChanges() || !slices.Equal(b.tried(), []int{3}) {
			t.Errorf("told %d times, misses changes: %v, tries of %v names; want one of all", n, w.MissesChanges(), b.tried())
		}
		w.Notify(b.tokens["a"])
		w.Notify(b.tokens["b"])
		w.Notify(driver.NewToken())
		if n := told(); n != 1 {
			t.Errorf("told %d times of one change", n)
		}
		b.setState(false)
		if n := told(); n != 1 || !w.MissesChanges() {
			t.Errorf("told %d times that it is down, misses changes: %v", n, w.MissesChanges())
		}
	})
}

func TestItListensUntilNobodyWatches(t *testing.T) {
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
				t.Fatalf("it has ended %d times; want %d", b.ended, i+1)
			}
		}
	})
}

// A damaged name costs the others one more try, and not the marks.
func TestThoseBesideADamagedNameAreMarked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, _ := follow("a", "bad", "c")
		defer w.Close()
		b.set(func(_ context.Context, names []string) error {
			if slices.Contains(names, "bad") {
				return errors.New("damaged")
			}
			return nil
		})
		b.setState(true)
		if got := b.tried(); !slices.Equal(got, []int{3, 1, 1, 1}) || len(b.tokens) != 2 || !w.MissesChanges() {
			t.Errorf("tries of %v names, marked are %v, misses changes: %v", got, b.tokens, w.MissesChanges())
		}
	})
}

func TestANameByItselfIsNotTriedTwiceInARow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, told := follow("a")
		defer w.Close()
		b.set(func(context.Context, []string) error { return errors.New("disk full") })
		b.setState(true)
		if got := b.tried(); !slices.Equal(got, []int{1}) || told() == 0 || !w.MissesChanges() {
			t.Errorf("tries of %v names, misses changes: %v", got, w.MissesChanges())
		}
		time.Sleep(10 * time.Minute)
		if n := len(b.tried()); n < 6 || n > 30 {
			t.Errorf("%d tries in ten minutes", n)
		}
	})
}

// While a backend hangs, watches soon learn that they receive no signals, however many
// names there are.
func TestABackendThatHangsIsNotWaitedForByEachName(t *testing.T) {
	gone := errors.New("the connection is gone")
	for what, hangs := range map[string]func(ctx context.Context, names []string) error{
		"until the end of ctx": func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return gone
		},
		"until a time limit of its own": func(context.Context, []string) error {
			time.Sleep(markTimeout - 1)
			return errors.Join(gone, context.DeadlineExceeded)
		},
		"after the first": func(ctx context.Context, names []string) error {
			if len(names) == 1 {
				<-ctx.Done()
			}
			return gone
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				names := slices.Repeat([]string{"a"}, 100)
				w, b, told := follow(names...)
				defer w.Close()
				b.set(hangs)
				b.setState(true)
				synctest.Wait()
				time.Sleep(2 * markTimeout)
				n, got := told(), b.tried()
				if n == 0 || !w.MissesChanges() {
					t.Errorf("told %d times, misses changes: %v", n, w.MissesChanges())
				}
				for i, names := range got {
					if names != []int{100, 1}[i%2] {
						t.Errorf("tries of %v names; want one of one after one of all", got[:min(len(got), 8)])
						break
					}
				}
				b.set(nil)
				time.Sleep(10 * time.Second)
				if n := told(); n == 0 || w.MissesChanges() {
					t.Errorf("then it hangs no more: told %d times, misses changes: %v", n, w.MissesChanges())
				}
			})
		})
	}
}

// Close does not wait for a backend that hangs.
func TestCloseEndsATryUnderWay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w, b, _ := follow("a", "b")
		b.set(func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		b.setState(true)
		synctest.Wait()
		began := time.Now()
		if w.Close(); time.Since(began) > 0 || len(b.tried()) > 2 {
			t.Errorf("it took %v, and tries of %v names", time.Since(began), b.tried())
		}
	})
}
