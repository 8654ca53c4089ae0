package redisscript

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// heldServer is a server that answers a script when errs has its error, or is closed. It
// answers 1 to each step, but 0 if the key is "busy".
type heldServer struct {
	Conn  // nil: no other methods
	errs  chan error
	sizes chan int
}

func newHeldServer() *heldServer {
	return &heldServer{errs: make(chan error), sizes: make(chan int, 1000)}
}

func (h *heldServer) Do(ctx context.Context, c Command) Reply {
	h.sizes <- len(c.Keys)
	var err error
	select {
	case err = <-h.errs:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p := Reply{Err: err}
	for _, k := range c.Keys {
		answer := int64(1)
		if k == stateKey("", "busy") {
			answer = 0
		}
		p.List = append(p.List, answer)
	}
	p.List = append(p.List, 1)
	return p
}

// answer answers each script with err until ctx ends.
func (h *heldServer) answer(ctx context.Context, err error) {
	go func() {
		for {
			select {
			case h.errs <- err:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// stepResult is the answer to a step; alone means that the step was sent alone.
type stepResult struct {
	answer int64
	alone  bool
	err    error
}

func runStep(ctx context.Context, co *coalescer, key string) (a stepResult) {
	p := co.do(ctx, time.Now(), &quickStep{claim: driver.Claim{Name: key}}, func() Reply {
		a.alone = true
		return Reply{}
	})
	a.answer, a.err = p.Int, p.Err
	return a
}

// runTogether runs a step with each of these keys at the same time, while one more is
// under way.
func runTogether(ctx context.Context, co *coalescer, keys []string) (answers []stepResult, wait func()) {
	co.stepsUnderWay.Add(1)
	answers, rest := runMoreTogether(ctx, co, keys)
	return answers, func() { rest(); co.stepsUnderWay.Add(-1) }
}

// runMoreTogether runs further steps at the same time, while the first are under way.
func runMoreTogether(ctx context.Context, co *coalescer, keys []string) (answers []stepResult, wait func()) {
	answers = make([]stepResult, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() { answers[i] = runStep(ctx, co, key) })
	}
	synctest.Wait()
	return answers, all.Wait
}

func freeNames(n int) []string { return slices.Repeat([]string{"free"}, n) }

func TestStepsThatComeTogetherAreSentTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := newHeldServer()
		co := newCoalescer(server, &Options{}, t.Context(), &clock{})
		keys := freeNames(200)
		keys[7], keys[100] = "busy", "busy"
		answers, wait := runTogether(t.Context(), co, keys)
		close(server.errs)
		wait()
		steps, scripts := 0, len(server.sizes)
		for range scripts {
			n := <-server.sizes
			if steps += n; n > maxStepsPerScript {
				t.Errorf("a script of %d steps", n)
			}
		}
		for i, a := range answers { // a step that is not the quick case is sent again, alone
			if isBusy := keys[i] == "busy"; a.err != nil || a.alone != isBusy || !isBusy && a.answer != 1 {
				t.Errorf("step %d: %+v", i, a)
			}
		}
		if steps != len(keys) || scripts > (len(keys)+maxStepsPerScript-1)/maxStepsPerScript+usualLanes {
			t.Errorf("%d steps in %d scripts; want %d in a few", steps, scripts, len(keys))
		}
		if n := co.stepsUnderWay.Load(); n != 0 {
			t.Errorf("%d steps are under way", n)
		}
	})
}

func TestAnAbandonedStepIsNotSent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := newHeldServer()
		co := newCoalescer(server, &Options{}, t.Context(), &clock{})
		co.lanes = make([]*lane, maxLanes) // as if all of them gathered steps
		for i := range co.lanes {
			co.lanes[i] = &lane{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, wait := runTogether(t.Context(), co, freeNames(2))
		answers, waitAbandoned := runMoreTogether(ctx, co, freeNames(3))
		cancel()
		waitAbandoned()
		for _, a := range answers {
			if !errors.Is(a.err, context.Canceled) {
				t.Errorf("%+v", a)
			}
		}
		close(server.errs)
		co.runLane(co.lanes[0])
		wait()
		if n := <-server.sizes; n != 2 || len(server.sizes) != 0 {
			t.Errorf("%d steps were sent, want the two that were not abandoned", n)
		}
		co.lanes = nil
	})
}

// While no other step is under way, a step is sent alone, and not with the script Many.
func TestASingleStepRunsAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := newHeldServer()
		co := newCoalescer(server, &Options{}, t.Context(), &clock{})
		for range 3 {
			if a := runStep(t.Context(), co, "free"); !a.alone || len(server.sizes) != 0 {
				t.Errorf("%+v, and %d scripts were sent", a, len(server.sizes))
			}
		}
	})
}

// While the server is slow, no step waits for a lane.
func TestASlowServerGetsMoreLanes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := newHeldServer()
		co := newCoalescer(server, &Options{}, t.Context(), &clock{})
		_, wait := runTogether(t.Context(), co, freeNames(4))
		for range 10 {
			time.Sleep(2 * slowAnswer)
			_, more := runMoreTogether(t.Context(), co, freeNames(4))
			defer more()
		}
		if n := len(server.sizes); n < 10 || n > 2*10+usualLanes {
			t.Errorf("%d scripts are under way, want one or two for each crowd", n)
		}
		close(server.errs)
		wait()
	})
}

// The user may lack the right to only one of the keys. So after such an error each caller
// sends its own step.
func TestAllStepsOfAScriptFailTogether(t *testing.T) {
	broken := errors.New("connection lost")
	for what, c := range map[string]struct {
		happens func(ctx context.Context, server *heldServer, end, giveUp func())
		after   time.Duration
		want    error // nil if the steps then run alone
	}{
		"the connection is lost": {func(ctx context.Context, s *heldServer, _, _ func()) { s.answer(ctx, broken) }, 0, broken},
		"the server refuses the script": {
			func(ctx context.Context, s *heldServer, _, _ func()) {
				s.answer(ctx, errors.New("NOPERM No permissions to access a key"))
			}, 0, nil,
		},
		"the driver is closed":  {func(_ context.Context, _ *heldServer, end, _ func()) { end() }, giveUpCheckInterval, driver.ErrClosed},
		"their callers give up": {func(_ context.Context, _ *heldServer, _, giveUp func()) { giveUp() }, giveUpCheckInterval, context.Canceled},
		"their ctx ends":        {func(context.Context, *heldServer, func(), func()) {}, time.Second, context.DeadlineExceeded},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				life, end := context.WithCancel(t.Context())
				defer end()
				short, giveUp := context.WithTimeout(t.Context(), time.Second)
				defer giveUp()
				server := newHeldServer()
				co := newCoalescer(server, &Options{}, life, &clock{})
				began := time.Now()
				answers, wait := runTogether(short, co, freeNames(20))
				c.happens(t.Context(), server, end, giveUp)
				wait()
				if took := time.Since(began); took > c.after {
					t.Errorf("the steps took %v, want %v", took, c.after)
				}
				for _, a := range answers {
					if !errors.Is(a.err, c.want) || a.alone != (c.want == nil) {
						t.Errorf("%+v, want %v", a, c.want)
					}
				}
				if c.after == 0 {
					return // the server has answered
				}
				close(server.errs)
				synctest.Wait() // late answers are read, too
				if life.Err() != nil {
					return
				}
				answers, wait = runTogether(t.Context(), co, freeNames(20))
				wait()
				for _, a := range answers {
					if a.err != nil || a.answer != 1 {
						t.Errorf("%+v after a late answer", a)
					}
				}
			})
		})
	}
}

func TestANameIsBusyForAWhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &busyNames{seed: maphash.MakeSeed(), began: time.Now()}
		if b.contains("job") {
			t.Error("busy from the beginning")
		}
		b.add("job")
		time.Sleep(busyTime - 1)
		if !b.contains("job") {
			t.Error("forgotten too early")
		}
		time.Sleep(1 * time.Nanosecond)
		if b.contains("job") {
			t.Error("not forgotten")
		}
	})
}
