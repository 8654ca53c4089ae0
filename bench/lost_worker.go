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

// A claimer is a lock library for the workers of a run.
type claimer interface {
	// claim waits until it holds the name, or until ctx ends. With try it does not wait.
	claim(ctx context.Context, name string, try bool) (worker.Lease, error)
	close()
}

// errHeld means that another client holds the name. errLost is the error of Err and
// Release for a lease that has ended.
var (
	errHeld = errors.New("held by others")
	errLost = errors.New("lost")
)

// contestedNames are the locks of a run, which many workers want.
var contestedNames = []history.Name{
	{Name: "a", Kind: history.Mutex, Limit: 1},
	{Name: "b", Kind: history.Mutex, Limit: 1},
	{Name: "c", Kind: history.Mutex, Limit: 1},
}

const (
	contenderVariable = "BENCH_WORKER" // names the contender with which this process locks
	engineVariable    = "BENCH_ENGINE"
)

// runWorkerProcess is the main function of a worker, which locks with one contender.
func runWorkerProcess() {
	name := os.Getenv(contenderVariable)
	if name == "" {
		return
	}
	for _, c := range faultContenders[os.Getenv(engineVariable)] {
		if c.name == name {
			os.Exit(worker.Run(os.Stdin, os.Stdout, c.workerOpener()))
		}
	}
	fmt.Fprintf(os.Stderr, "no contender has the name %q\n", name)
	os.Exit(1)
}

func (c faultContender) workerOpener() worker.Opener {
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
		return claimerClient{l}, nil
	}
}

// claimerClient makes a claimer a worker.Client.
type claimerClient struct{ claimer }

func (c claimerClient) Claim(ctx context.Context, name history.Name, _ string, _ int, try bool) (worker.Lease, error) {
	lease, err := c.claim(ctx, name.Name, try)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // a library may return another error when ctx ends
	}
	return lease, err
}

// All locks the names in a fixed order. Otherwise two clients could wait for each other.
func (c claimerClient) All(ctx context.Context, names []history.Name) ([]worker.Lease, error) {
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

func (c claimerClient) Lead(context.Context, history.Name, func(worker.Lease)) error {
	return errors.ErrUnsupported // no name of the run is an election
}

func (c claimerClient) AnswerOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return history.TimedOut
	case errors.Is(err, errHeld):
		return history.Held
	}
	return history.Unknown
}

func (c claimerClient) Lost(err error) bool { return errors.Is(err, errLost) }

func (c claimerClient) Close() error {
	c.close()
	return nil
}

// newLeaseCtx returns a ctx for a library whose lease ends with the ctx of its wait.
// leaseCtx ends with ctx until detach is called, and then only with end. detach returns
// false if ctx ended before.
func newLeaseCtx(ctx context.Context) (leaseCtx context.Context, detach func() bool, end context.CancelFunc) {
	leaseCtx, end = context.WithCancel(context.Background())
	return leaseCtx, context.AfterFunc(ctx, end), end
}

// A lossSignal notifies a holder of the loss of its lease.
type lossSignal struct{ done chan struct{} }

func newLossSignal() lossSignal { return lossSignal{make(chan struct{})} }

func (l lossSignal) Done() <-chan struct{} { return l.done }
func (l lossSignal) lose()                 { close(l.done) }

func (l lossSignal) Err() error {
	select {
	case <-l.done:
		return errLost
	default:
		return nil
	}
}
