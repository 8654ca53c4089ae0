package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// A locker is a lock library as the workers of a run use it.
type locker interface {
	// claim waits until it holds the name, or until ctx ends. With try it does not wait.
	claim(ctx context.Context, name string, try bool) (worker.Lease, error)
	close()
}

// errHeld is a refusal: another client holds the name. errLost is the error that Err and
// Release return for a lease that is over.
var (
	errHeld = errors.New("held by others")
	errLost = errors.New("lost")
)

// names are the locks of a run, which many workers want.
var names = []history.Name{
	{Name: "a", Kind: history.Mutex, Limit: 1},
	{Name: "b", Kind: history.Mutex, Limit: 1},
	{Name: "c", Kind: history.Mutex, Limit: 1},
}

const (
	workerOf     = "BENCH_WORKER" // the name of the contender with which this process locks
	workerEngine = "BENCH_ENGINE"
)

// workIfAsked is a worker of a run. It locks with one contender until the run kills it or
// asks it to end.
func workIfAsked() {
	who := os.Getenv(workerOf)
	if who == "" {
		return
	}
	for _, c := range losers[os.Getenv(workerEngine)] {
		if c.name == who {
			os.Exit(worker.Run(os.Stdin, os.Stdout, c.opener()))
		}
	}
	fmt.Fprintf(os.Stderr, "no contender is called %q\n", who)
	os.Exit(1)
}

func (c loser) opener() worker.Opener {
	if c.open == nil {
		return worker.OpenPawl
	}
	return func(_ context.Context, config *worker.Config, _ int) (worker.Client, error) {
		u, err := url.Parse(config.URL)
		if err != nil {
			return nil, err
		}
		l, err := c.open(u.Host, config.TTL)
		if err != nil {
			return nil, err
		}
		return lockerClient{l}, nil
	}
}

// lockerClient makes a worker's client of a locker.
type lockerClient struct{ locker }

func (c lockerClient) Claim(ctx context.Context, name history.Name, _ string, _ int, try bool) (worker.Lease, error) {
	lease, err := c.claim(ctx, name.Name, try)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // a library may return an error of its own when ctx ends
	}
	return lease, err
}

// All takes the names in one order. Otherwise two clients could wait for each other.
func (c lockerClient) All(ctx context.Context, names []history.Name) ([]worker.Lease, error) {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(names[i].Name, names[j].Name) })
	leases := make([]worker.Lease, len(names))
	for _, i := range order {
		lease, err := c.Claim(ctx, names[i], history.Whole, 1, false)
		if err != nil {
			for _, l := range leases {
				if l != nil {
					_ = l.Release(context.Background())
				}
			}
			return nil, err
		}
		leases[i] = lease
	}
	return leases, nil
}

func (c lockerClient) Lead(context.Context, history.Name, func(worker.Lease)) error {
	return errors.ErrUnsupported // no name of the run is an election
}

func (c lockerClient) AnswerOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return history.TimedOut
	case errors.Is(err, errHeld):
		return history.Held
	}
	return history.Unknown
}

func (c lockerClient) Lost(err error) bool { return errors.Is(err, errLost) }

func (c lockerClient) Close() error {
	c.close()
	return nil
}

// waiting returns a ctx for a library whose lease ends with the ctx of its wait. own ends
// with ctx until held is called, and then only with end. held returns false if ctx ended
// first.
func waiting(ctx context.Context) (own context.Context, held func() bool, end context.CancelFunc) {
	own, end = context.WithCancel(context.Background())
	return own, context.AfterFunc(ctx, end), end
}

// A loss is the notice by which a library tells a holder that its lease is lost.
type loss struct{ done chan struct{} }

func newLoss() loss { return loss{make(chan struct{})} }

func (l loss) Done() <-chan struct{} { return l.done }
func (l loss) lose()                 { close(l.done) }

func (l loss) Err() error {
	select {
	case <-l.done:
		return errLost
	default:
		return nil
	}
}
