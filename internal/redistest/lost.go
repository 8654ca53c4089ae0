package redistest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// CheckLostReplies loses the answer to each step after the server has run it. A repeated
// step must get the same answer, or have no second effect, and no holder may lose its
// lease. The proxy recognizes renewals and releases by the hashes of their scripts, not
// by the token, because an earlier request may arrive late on a slow machine.
func CheckLostReplies(tb TB, renewSHA, releaseSHA string, open func(addr string) driver.Driver) {
	tb.Helper()
	server := Start(tb)
	proxy := servertest.StartProxy(tb, server.Addr)
	l := &lossyPair{TB: tb, proxy: proxy, far: open(proxy.Addr), near: open(server.Addr), renewSHA: renewSHA, releaseSHA: releaseSHA}
	for _, weight := range []int{driver.Exclusive, 1} {
		c := claim("job")
		c.Weight, c.Limit = weight, weight
		l.runSteps(c) // loads the scripts: otherwise the lost answer would be NOSCRIPT
		c.Token = driver.NewToken()
		l.runStepsWithLoss(c)
	}
	l.checkClient()
}

// lossyPair has two drivers of one server. The far driver's proxy loses answers.
type lossyPair struct {
	TB
	proxy     *servertest.Proxy
	far, near driver.Driver

	renewSHA, releaseSHA string
}

func (l *lossyPair) runSteps(c driver.Claim) {
	l.Helper()
	for _, step := range []func(context.Context) error{acquire(l.far, c), renew(l.far, c), release(l.far, c)} {
		if err := bounded(step); err != nil {
			l.Fatalf("%v", err)
		}
	}
}

func (l *lossyPair) runStepsWithLoss(c driver.Claim) {
	l.Helper()
	l.loseAnswers("acquire", 2, string(c.Token[:]), acquire(l.far, c))
	granted := l.holder(c.Name)
	other := c
	other.Token = driver.NewToken()
	if _, err := l.near.Acquire(context.Background(), other); !errors.Is(err, driver.ErrHeld) {
		l.Errorf("%v; want ErrHeld by the claim whose answer was lost", err)
	}
	recovers(l, acquire(l.far, c))
	if again := l.holder(c.Name); again.Fence != granted.Fence {
		l.Errorf("fence %d; want %d as before", again.Fence, granted.Fence)
	}

	waiter := other
	waiter.Queue, waiter.QueueTTL = true, time.Minute
	l.loseAnswers("acquire, and wait", 2, string(waiter.Token[:]), acquire(l.far, waiter))
	err := bounded(func(ctx context.Context) error { _, err := l.near.Acquire(ctx, waiter); return err })
	if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Position != 1 {
		l.Errorf("%v; want the first place in the queue", err)
	}

	c.TTL = 5 * time.Minute
	l.loseAnswers("renew", 1, l.renewSHA, renew(l.far, c))
	if h := l.holder(c.Name); h.ExpiresIn < 4*time.Minute {
		l.Errorf("the lease expires in %v; want it renewed", h.ExpiresIn)
	}
	recovers(l, renew(l.far, c))

	l.loseAnswers("release", 1, l.releaseSHA, release(l.far, c))
	next := l.holder(c.Name)
	if next.Fence <= granted.Fence {
		l.Errorf("fence %d after %d", next.Fence, granted.Fence)
	}
	if err := bounded(release(l.far, c)); !errors.Is(err, driver.ErrNoSuchLease) {
		l.Errorf("%v; want ErrNoSuchLease from the second release", err)
	}
	if h := l.holder(c.Name); h.Fence != next.Fence {
		l.Errorf("fence %d; want the next holder to keep its lease", h.Fence)
	}
	if err := bounded(release(l.far, waiter)); err != nil {
		l.Errorf("%v", err)
	}
}

// checkClient loses answers to a pawl.Client, which repeats requests itself.
func (l *lossyPair) checkClient() {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	locks, err := pawl.New(l.far, servertest.Patient)
	if err != nil {
		l.Fatalf("%v", err)
	}
	defer locks.Close()
	lost := l.proxy.LoseReply("{report}")
	lease, err := locks.Mutex("report", pawl.WithTTL(6*time.Second)).Lock(ctx)
	if err != nil {
		l.Fatalf("Lock: %v", err)
	}
	<-lost
	if h := l.holder("report"); h.Fence != lease.Fence() {
		l.Errorf("the fence is %d, and %d on the server", lease.Fence(), h.Fence)
	}
	<-l.proxy.LoseReply(l.renewSHA)
	if err := lease.Err(); err != nil {
		l.Errorf("%v; want the lease kept, because only an answer was lost", err)
	}
	lost = l.proxy.LoseReply(l.releaseSHA)
	if err := lease.Release(ctx); errors.Is(err, pawl.ErrLost) || !errors.Is(err, pawl.ErrUnavailable) {
		l.Errorf("%v; want ErrUnavailable", err)
	}
	<-lost
	if e, err := l.near.Inspect(ctx, "report"); err != nil || len(e.Holders) != 0 {
		l.Errorf("%+v, %v; want no holder", e, err)
	}
}

// loseAnswers runs a step, and loses the answers to its requests with this text. times is
// their number: two for an acquire. The step still succeeds if the driver sends the last
// request again, and the server handles that one first.
func (l *lossyPair) loseAnswers(what string, times int, text string, step func(context.Context) error) {
	l.Helper()
	lost := l.proxy.LoseReplies(times, text)
	if err := bounded(step); err != nil && !errors.Is(err, driver.ErrUnavailable) {
		l.Fatalf("%s: %v; want ErrUnavailable, or success", what, err)
	}
	<-lost
}

func (l *lossyPair) holder(name string) driver.Holder {
	l.Helper()
	e, err := l.near.Inspect(context.Background(), name)
	if err != nil || len(e.Holders) != 1 {
		l.Fatalf("%+v, %v; want one holder", e, err)
	}
	return e.Holders[0]
}
