package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// newHungJob makes a job whose backend does not answer, and ignores its ctx, until the
// test ends.
func newHungJob(t *testing.T) *job {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return &job{
		v: &output{err: io.Discard}, name: "x", maxWait: time.Second, signals: make(chan os.Signal, 2),
		open: func(context.Context) (*pawl.Client, error) {
			<-end
			return nil, errors.New("too late")
		},
	}
}

func TestWaitBoundsAnOpenThatIgnoresItsCtx(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		j := newHungJob(t)
		began := time.Now()
		err := j.run()
		if took := time.Since(began); took != j.maxWait+lateAnswerTimeout {
			t.Errorf("it took %v", took)
		}
		if !codeIs(err, exitUnavailable) || errors.Is(err, errNotAcquired) {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestASignalEndsAnOpenThatIgnoresItsCtx(t *testing.T) {
	for _, signals := range []int{1, 2} {
		bubble.Test(t, func(t *testing.T) {
			j := newHungJob(t)
			j.maxWait = 0
			for i := range signals {
				time.AfterFunc(time.Duration(i)*time.Second, func() { j.signals <- syscall.SIGTERM })
			}
			began := time.Now()
			if err := j.run(); !codeIs(err, exitSignal+int(syscall.SIGTERM)) {
				t.Errorf("it ends with %v", err)
			}
			if took := time.Since(began); took != map[int]time.Duration{1: signalTimeout, 2: time.Second}[signals] {
				t.Errorf("%d signals: it took %v", signals, took)
			}
		})
	}
}

// One deadline bounds opening and waiting together.
func TestWaitIncludesTheOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		client := func() *pawl.Client { return mustGet(pawl.New(memory.Driver(), nil))(t) }
		holder := client()
		defer holder.Close()
		mustGet(holder.Mutex("x").Lock(t.Context()))(t)
		j := newHungJob(t)
		j.maxWait = 10 * time.Second
		j.open = func(context.Context) (*pawl.Client, error) {
			time.Sleep(8 * time.Second)
			return client(), nil
		}
		j.acquire = func(ctx context.Context, c *pawl.Client) (jobLease, error) { return c.Mutex("x").Lock(ctx) }
		began := time.Now()
		err := j.run()
		if took := time.Since(began); took != j.maxWait {
			t.Errorf("it took %v", took)
		}
		if !codeIs(err, exitHeld) || !errors.Is(err, errNotAcquired) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// A hungDriver is a backend that answers no request.
type hungDriver struct{ driver.Driver }

func (hungDriver) Acquire(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
	<-ctx.Done()
	return driver.Grant{}, ctx.Err()
}

func (hungDriver) Release(ctx context.Context, _ driver.LeaseRef) error {
	<-ctx.Done()
	return ctx.Err()
}

// Pawl releases a grant that may still arrive, but --wait bounds that release, too.
func TestWaitBoundsTheRelease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		j := newHungJob(t)
		j.maxWait = 10 * time.Second
		j.open = func(context.Context) (*pawl.Client, error) {
			return pawl.New(hungDriver{engine.Full(memlock.New(nil))}, nil)
		}
		j.acquire = func(ctx context.Context, c *pawl.Client) (jobLease, error) { return c.Mutex("x").Lock(ctx) }
		began := time.Now()
		err := j.run()
		if took := time.Since(began); took < j.maxWait || took > j.maxWait+lateAnswerTimeout {
			t.Errorf("it took %v", took)
		}
		if !codeIs(err, exitUnavailable) {
			t.Errorf("it ends with %v", err)
		}
		time.Sleep(time.Hour) // a release that is still repeated ends with the lease
	})
}

// A backend's own timeout, such as a dial timeout, is not the end of --wait.
func TestADialTimeoutIsNotTheEndOfWait(t *testing.T) {
	dialErr := &driver.Error{Backend: "redis host:6379", Op: "open", Err: context.DeadlineExceeded}
	for _, maxWait := range []time.Duration{0, 30 * time.Second} {
		bubble.Test(t, func(t *testing.T) {
			j := newHungJob(t)
			j.maxWait = maxWait
			j.open = func(context.Context) (*pawl.Client, error) {
				time.Sleep(5 * time.Second)
				return nil, dialErr
			}
			err := j.run()
			if e, ok := errors.AsType[*exit](err); !ok || e.code != exitUnavailable || e.err != error(dialErr) {
				t.Errorf("maxWait %v: it ends with %v; want %v", maxWait, err, dialErr)
			}
		})
	}
}

func TestAnErrorAtTheEndOfWaitReportsTheWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		j := newHungJob(t)
		j.open = func(ctx context.Context) (*pawl.Client, error) {
			<-ctx.Done()
			return nil, &driver.Error{Backend: "redis host:6379", Op: "open", Err: ctx.Err()}
		}
		if err := j.run(); !codeIs(err, exitUnavailable) || !strings.Contains(err.Error(), `gave up on "x" after 1s: redis host:6379`) {
			t.Errorf("it ends with %v", err)
		}
	})
}
