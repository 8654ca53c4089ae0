package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
)

// OpenPawl opens a client of Pawl, with the planted bug if the Config names one.
func OpenPawl(ctx context.Context, c *Config, client int) (Client, error) {
	bug := plants[c.Planted]
	url := c.URL
	if bug.url != nil {
		url = bug.url(url, c.Worker)
	}
	d, err := driver.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if bug.driver != nil {
		d = withBug(d, bug.driver)
	}
	o := &pawl.Options{TTL: c.TTL, ID: fmt.Sprintf("prove-%d.%d.%d", c.Worker, c.Life, client)}
	access.SetNamespaces(o, c.Namespace)
	locks, err := pawl.New(d, o)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &pawlClient{locks: locks, bug: bug}, nil
}

// isMemory reports whether the locks of a URL are in the memory of one process.
func isMemory(url string) bool { return strings.HasPrefix(url, "mem:") }

// leftInMemory returns the remaining holders and waiters in the memory of this process.
func leftInMemory(c *Config) ([]history.Left, error) {
	ctx, o := context.Background(), &pawl.Options{}
	access.SetNamespaces(o, c.Namespace)
	locks, err := pawl.Open(ctx, c.URL, o)
	if err != nil {
		return nil, err
	}
	left, err := Left(ctx, locks, c.Names, 3*c.TTL)
	return left, errors.Join(err, locks.Close())
}

// Left returns the remaining holders and waiters of the names. It retries while there are
// any, or after an error, but no longer than timeout.
func Left(ctx context.Context, locks *pawl.Client, names []history.Name, timeout time.Duration) (left []history.Left, err error) {
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		left, err = nil, nil
		inUse := false
		for _, n := range names {
			var e pawl.Entry
			if e, err = locks.Inspect(ctx, n.Name); err != nil {
				break
			}
			left = append(left, history.Left{Name: n.Name, Holders: len(e.Holders), Waiters: len(e.Waiters)})
			inUse = inUse || len(e.Holders)+len(e.Waiters) > 0
		}
		if err == nil && !inUse || time.Since(begun) > timeout {
			return left, err
		}
	}
}

type pawlClient struct {
	locks   *pawl.Client
	bug     plant
	options []pawl.LockOption
}

// WithMaxHold is part of Limiter.
func (p *pawlClient) WithMaxHold(d time.Duration) Client {
	return &pawlClient{p.locks, p.bug, []pawl.LockOption{pawl.WithMaxHold(d)}}
}

func (p *pawlClient) lease(l Lease, name history.Name) Lease {
	if p.bug.lossDelay == 0 || p.bug.kind != "" && p.bug.kind != name.Kind {
		return l
	}
	return &lateLease{Lease: l, delay: p.bug.lossDelay}
}

func (p *pawlClient) lock(name history.Name, mode string, weight int) pawl.Lockable {
	switch {
	case name.Kind == history.Semaphore:
		return p.locks.Semaphore(name.Name, name.Limit, p.options...).Permits(weight)
	case name.Kind == history.RW && mode == history.Shared:
		return p.locks.RWMutex(name.Name, p.options...).RLocker()
	case name.Kind == history.RW:
		return p.locks.RWMutex(name.Name, p.options...)
	}
	return p.locks.Mutex(name.Name, p.options...)
}

func (p *pawlClient) Claim(ctx context.Context, name history.Name, mode string, weight int, try bool) (Lease, error) {
	l := p.lock(name, mode, weight)
	lock := l.Lock
	if try {
		lock = l.TryLock
	}
	lease, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return p.lease(lease, name), nil
}

func (p *pawlClient) All(ctx context.Context, names []history.Name) ([]Lease, error) {
	if p.bug.onlyFirst {
		return p.lockFirst(ctx, names)
	}
	parts := make([]pawl.Lockable, len(names))
	for i, n := range names {
		parts[i] = p.lock(n, history.Whole, 1)
	}
	group, err := pawl.All(parts...).Lock(ctx)
	if err != nil {
		return nil, err
	}
	leases := make([]Lease, len(names))
	for i, n := range names {
		leases[i] = p.lease(groupMember{group, n.Name}, n)
	}
	return leases, nil
}

// groupMember is one lease of a group. Releasing it releases the whole group.
type groupMember struct {
	*pawl.GroupLease
	name string
}

func (l groupMember) Fence() uint64 { return l.GroupLease.Fence(l.name) }

// errTermOver ends a campaign after one term.
var errTermOver = errors.New("the term is over")

func (p *pawlClient) Lead(ctx context.Context, name history.Name, f func(lease Lease)) error {
	err := p.locks.Election(name.Name).Run(ctx, func(ctx context.Context) error {
		lease, ok := pawl.LeaseOf(ctx, name.Name)
		if !ok {
			return errors.New("the leader has no lease")
		}
		f(p.lease(lease, name))
		return errTermOver
	})
	if errors.Is(err, errTermOver) {
		return nil
	}
	return err
}

func (p *pawlClient) AnswerOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return history.TimedOut
	case errors.Is(err, pawl.ErrHeld):
		return history.Held
	}
	return history.Unknown
}

func (p *pawlClient) Lost(err error) bool { return errors.Is(err, pawl.ErrLost) }

// Close waits for an unreachable server at most 30 s.
func (p *pawlClient) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- p.locks.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("the client did not close within 30 s")
	}
}
