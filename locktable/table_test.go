package locktable_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

var _ interface {
	driver.Driver
	driver.Signaler
	driver.Lister
	driver.LeaseBreaker
} = (*locktable.Driver)(nil)

func TestAClaimGoesThroughTheTable(t *testing.T) {
	s := newShelf()
	d, ctx := s.client("1"), t.Context()
	g, err := d.Acquire(ctx, *mutex("a"))
	if err != nil || g.Fence != uint64(start) || g.TTL != ttl {
		t.Fatalf("granted %+v, %v", g, err)
	}
	_, err = d.Acquire(ctx, *mutex("b"))
	var held *driver.HeldError
	if !errors.As(err, &held) || held.Position != 1 || held.Name != "job" {
		t.Fatalf("the second is answered %v", err)
	}
	answers, err := d.Renew(ctx, []driver.LeaseRef{lease("a"), lease("b"), lease("a")})
	if err != nil || len(answers) != 3 || answers[0] != nil || !errors.Is(answers[1], driver.ErrNoSuchLease) || answers[2] != nil {
		t.Fatalf("renewals are answered %v, %v", answers, err)
	}
	seen, err := d.Inspect(ctx, "job")
	if err != nil || len(seen.Holders) != 1 || len(seen.Waiters) != 1 || seen.Name != "job" {
		t.Fatalf("entry is %+v, %v", seen, err)
	}
	if err := d.Break(ctx, "job", g.Fence+1, 0, driver.Owner{}); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Fatalf("break of a fence that nobody has: %v", err)
	}
	noError(t, errors.Join(d.Break(ctx, "job", g.Fence, 0, driver.Owner{}), d.Release(ctx, lease("b"))))
	if err := d.Release(ctx, lease("a")); !errors.As(err, new(*driver.BrokenError)) {
		t.Fatalf("release by who was broken: %v", err)
	}
}

func TestInvalidInputNeverReachesTheTable(t *testing.T) {
	s := newShelf()
	d, ctx := s.client("1"), t.Context()
	var errs []error
	_, err := d.Acquire(ctx, *with(mutex("a"), func(c *driver.Claim) { c.TTL = 0 }))
	errs = append(errs, err)
	_, err = d.Renew(ctx, []driver.LeaseRef{lease("a"), {Name: "job", Token: tokenOf("b")}})
	errs = append(errs, err)
	_, err = d.Inspect(ctx, "")
	errs = append(errs, err,
		d.Release(ctx, driver.LeaseRef{Name: "job", Token: tokenOf("a"), MinHold: -1}), d.Release(ctx, driver.LeaseRef{}),
		d.Break(ctx, "job", 1, -1, driver.Owner{}), d.Break(ctx, "", 1, 0, driver.Owner{}),
		d.Break(ctx, "job", 1, 0, driver.Owner{Labels: map[string]string{"": ""}}))
	for i, err := range errs {
		if !errors.As(err, new(*driver.InvalidError)) {
			t.Errorf("call %d is answered %v", i, err)
		}
	}
	equal(t, "calls of the table", s.updates, 0)
}

func TestTroubleWithTheTableIsADriverErrorWithOpAndName(t *testing.T) {
	s := newShelf()
	d := s.client("1")
	_, _ = d.Acquire(t.Context(), *mutex("a"))
	typed := &driver.Error{Backend: "shelf in the cellar", Op: "?", Hint: "look there", Permanent: true, Err: io.ErrUnexpectedEOF}
	for _, s.err = range []error{io.ErrUnexpectedEOF, typed} {
		for op, err := range everything(t.Context(), d) {
			var e *driver.Error
			if !errors.As(err, &e) || string(e.Op) != op || e.Name != "job" || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s is answered %#v", op, err)
				continue
			}
			if s.err != error(typed) && (e.Backend != "shelf" || e.Permanent) {
				t.Errorf("%s is answered %+v", op, *e)
			}
			if s.err == error(typed) && (e.Backend != typed.Backend || e.Hint != typed.Hint || !e.Permanent || e == typed) {
				t.Errorf("%s is answered %+v, and said was %+v", op, *e, *typed)
			}
		}
	}
	equal(t, "op of the table's own error", typed.Op, "?")
}

func TestTheEndOfTheCallersContextIsPassedAsItIs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newShelf()
	for op, err := range everything(ctx, s.client("1")) {
		if err != context.Canceled {
			t.Errorf("%s is answered %v", op, err)
		}
	}
	equal(t, "rows", len(s.rows), 0)
}

// A table has time-outs of its own. To the caller, whose ctx goes on, they are trouble
// like any other.
func TestTheEndOfAnotherContextIsTrouble(t *testing.T) {
	s := newShelf()
	d := s.client("1")
	_, _ = d.Acquire(t.Context(), *mutex("a"))
	s.err = context.DeadlineExceeded
	for op, err := range everything(t.Context(), d) {
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%s is answered %v", op, err)
		}
	}
}

func TestAfterCloseEverythingIsAnsweredErrClosed(t *testing.T) {
	s := newShelf()
	d := s.client("1")
	equal(t, "first Close", d.Close(), io.ErrClosedPipe)
	equal(t, "second Close", d.Close(), nil)
	equal(t, "closings of the table", s.closes, 1)
	for op, err := range everything(t.Context(), d) {
		if err != driver.ErrClosed {
			t.Errorf("%s is answered %v", op, err)
		}
	}
}

// A call that fails because the driver was closed meanwhile returns ErrClosed.
func TestACallThatIsOvertakenByCloseIsAnsweredErrClosed(t *testing.T) {
	c := &closing{shelf: newShelf()}
	d := locktable.New(c, "1")
	c.meanwhile = d.Close
	if _, err := d.Acquire(t.Context(), *mutex("a")); err != driver.ErrClosed {
		t.Errorf("answered %v", err)
	}
}

func TestAStepThatIsRepeatedAnswersOnceAndSignalsOnce(t *testing.T) {
	s := newShelf()
	s.twice = true
	d, ctx := s.client("1"), t.Context()
	var signals []driver.Signal
	defer d.Listen(func(s driver.Signal) { signals = append(signals, s) })()
	g, err := d.Acquire(ctx, *mutex("a"))
	if err != nil || g.Fence != uint64(s.now) {
		t.Fatalf("granted %+v, %v", g, err)
	}
	if _, err := d.Acquire(ctx, *mutex("b")); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("the second is answered %v", err)
	}
	answers, err := d.Renew(ctx, []driver.LeaseRef{lease("a"), lease("b")})
	if err != nil || answers[0] != nil || answers[1] != driver.ErrNoSuchLease {
		t.Fatalf("renewals are answered %v, %v", answers, err)
	}
	noError(t, d.Release(ctx, lease("a")))
	if len(signals) != 1 || signals[0].Kind != driver.SignalGranted || signals[0].Token != tokenOf("b") {
		t.Errorf("signals are %+v", signals)
	}
	if g, err := d.Acquire(ctx, *mutex("b")); err != nil || g.Fence != signals[0].Fence {
		t.Errorf("signalled %+v, then granted %+v, %v", signals, g, err)
	}
}

func TestASignalGoesToTheClientThatWaits(t *testing.T) {
	s := newShelf()
	one, two := s.client("1"), s.client("2")
	equal(t, "inbox", two.Inbox(), "2")
	var got []string
	hear := func(who string) func(driver.Signal) { return func(driver.Signal) { got = append(got, who) } }
	defer one.Listen(hear("one"))()
	stop := two.Listen(hear("two"))
	defer two.Listen(hear("two too"))()
	_, _ = one.Acquire(t.Context(), *mutex("a"))
	_, _ = two.Acquire(t.Context(), *mutex("b"))
	_ = one.Release(t.Context(), lease("a"))
	slices.Sort(got)
	if !slices.Equal(got, []string{"two", "two too"}) {
		t.Errorf("heard by %v", got)
	}
	stop()
	stop() // a second time does nothing
	got = nil
	two.Deliver(driver.Signal{})
	if !slices.Equal(got, []string{"two too"}) {
		t.Errorf("after one stopped listening, heard by %v", got)
	}
}

func TestListenersComeAndGoWhileSignalsArrive(t *testing.T) {
	d := newShelf().client("1")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				stop := d.Listen(func(driver.Signal) { d.Listen(func(driver.Signal) {})() })
				d.Deliver(driver.Signal{})
				stop()
			}
		})
	}
	all.Wait()
}

func TestWhatTheCallerDoesToItsLabelsAfterwardsIsNotSeen(t *testing.T) {
	labels := map[string]string{"k": "v"}
	kept := &locktable.Entry{}
	d := locktable.New(memory{newShelf(), kept}, "1")
	_, _ = d.Acquire(t.Context(), *with(mutex("a"), func(c *driver.Claim) { c.Owner.Labels = labels }))
	_, _ = d.Acquire(t.Context(), *with(mutex("b"), func(c *driver.Claim) { c.Owner.Labels = labels }))
	_ = d.Break(t.Context(), "job", kept.Fence, time.Minute, driver.Owner{Labels: labels})
	labels["k"] = "changed"
	equal(t, "waiter's label", kept.Queue[0].Owner.Labels["k"], "v")
	equal(t, "breaker's label", kept.Broken[0].By.Labels["k"], "v")
}
