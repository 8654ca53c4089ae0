package redisscript

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heldUp is a server that answers nothing until it may; then it says yes to every step, but for those whose key is "busy".
type heldUp struct {
	Sender // has no other methods
	may    chan error
	sizes  chan int
}

func newHeldUp() *heldUp { return &heldUp{may: make(chan error), sizes: make(chan int, 1000)} }

func (h *heldUp) Run(ctx context.Context, s *Script, c Call) Reply {
	h.sizes <- len(c.Keys)
	var err error
	select {
	case err = <-h.may:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p := Reply{Err: err}
	for _, k := range c.Keys {
		answer := int64(1)
		if k == "busy" {
			answer = 0
		}
		p.List = append(p.List, answer)
	}
	p.List = append(p.List, 1)
	return p
}

// told is what a step was told.
type told struct {
	answer int64
	alone  bool
	err    error
}

// crowd takes a step with each of these keys at the same time, while one more is under way.
func crowd(ctx context.Context, t *together, keys []string) (answers []told, wait func()) {
	if _, alone, _ := t.do(ctx, "first", "a"); !alone {
		panic("the first was not alone")
	}
	answers = make([]told, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() {
			answers[i].answer, answers[i].alone, answers[i].err = t.do(ctx, key, "a")
			t.leave()
		})
	}
	synctest.Wait()
	return answers, func() { all.Wait(); t.leave() }
}

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "free"
	}
	return keys
}

func TestStepsThatComeTogetherAreSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newHeldUp()
		to := newTogether(server, t.Context(), &clock{})
		keys := names(200)
		keys[7], keys[100] = "busy", "busy"
		answers, wait := crowd(t.Context(), to, keys)
		close(server.may)
		wait()
		steps, scripts := 0, len(server.sizes)
		for range scripts {
			n := <-server.sizes
			if steps += n; n > most {
				t.Errorf("a script of %d steps", n)
			}
		}
		for i, a := range answers {
			if a.alone {
				steps++
			}
			if want := int64(1); a.err != nil || !a.alone && a.answer != want && keys[i] != "busy" || keys[i] == "busy" && a.answer != 0 {
				t.Errorf("step %d: %+v", i, a)
			}
		}
		if steps != len(keys) || scripts > len(keys)/4 {
			t.Errorf("%d steps in %d scripts; want %d in a few", steps, scripts, len(keys))
		}
		if n := to.under.Load(); n != 0 {
			t.Errorf("%d are under way", n)
		}
	})
}

func TestAStepThatIsNotAnsweredEndsWithItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newHeldUp()
		to := newTogether(server, t.Context(), &clock{})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		answers, wait := crowd(short, to, names(20))
		wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v, want 1s", took)
		}
		late := 0
		for _, a := range answers {
			if errors.Is(a.err, context.DeadlineExceeded) {
				late++
			} else if !a.alone {
				t.Errorf("%+v", a)
			}
		}
		if late == 0 {
			t.Error("nobody had to wait")
		}
		close(server.may)
		synctest.Wait() // the answers that nobody waits for are taken, too
		answers, wait = crowd(t.Context(), to, names(20))
		wait()
		for _, a := range answers {
			if a.err != nil || !a.alone && a.answer != 1 {
				t.Errorf("%+v after an answer that nobody waited for", a)
			}
		}
	})
}

func TestAStepThatWasGivenUpIsNotSent(t *testing.T) {
	server := newHeldUp()
	close(server.may)
	to := newTogether(server, t.Context(), &clock{})
	all := make([]*step, 3)
	for i := range all {
		all[i], _ = to.free.Get().(*step)
	}
	all[1].fate.Store(givenUp)
	to.send(slices.Clone(all))
	if n := <-server.sizes; n != 2 || len(all[0].done) != 1 || len(all[1].done) != 0 || len(all[2].done) != 1 {
		t.Errorf("%d were sent, want all but the second", n)
	}
	all[0].fate.Store(givenUp)
	to.send(all[:1])
	if len(server.sizes) > 0 {
		t.Error("nothing was sent, and a script was run")
	}
}

func TestAFailureIsToldToAllThatWereSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newHeldUp()
		to := newTogether(server, t.Context(), &clock{})
		broken := errors.New("connection lost")
		answers, wait := crowd(t.Context(), to, names(20))
		for range len(server.sizes) {
			server.may <- broken
		}
		wait()
		for _, a := range answers {
			if a.alone == errors.Is(a.err, broken) {
				t.Errorf("%+v", a)
			}
		}
	})
}

// One of them may not be allowed to the user: that is no matter of the others, and each asks for itself.
func TestStepsThatAreRefusedTogetherAreTakenAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newHeldUp()
		to := newTogether(server, t.Context(), &clock{})
		answers, wait := crowd(t.Context(), to, names(20))
		for range len(server.sizes) {
			server.may <- errors.New("NOPERM No permissions to access a key")
		}
		wait()
		for _, a := range answers {
			if a.err != nil || a.answer != 0 {
				t.Errorf("%+v; want 0, not the quick case", a)
			}
		}
	})
}

func TestClosingEndsWhatIsSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		to := newTogether(newHeldUp(), life, &clock{})
		answers, wait := crowd(t.Context(), to, names(20))
		end()
		wait()
		for _, a := range answers {
			if a.alone == errors.Is(a.err, context.Canceled) {
				t.Errorf("%+v", a)
			}
		}
	})
}
