package worker

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/driver"
)

// A plant is an intentional bug, to show that the checker finds such bugs. It changes
// Pawl's requests to the backend, the backend's answers, or the times at which a holder
// sees its loss.
type plant struct {
	what      string
	needs     string // the required scheme of the URL; empty for any
	url       func(url string, worker int) string
	driver    *hooks // nil if the driver has no bug
	onlyFirst bool   // All claims only its first name

	lossDelay time.Duration // the delay after which a holder sees its loss
	kind      string        // the kind of names that have lossDelay; empty for all
}

// hooks are the places where a driver may have a bug. n is the number of the call.
type hooks struct {
	hidesAbilities bool // so that no optional interface of the driver bypasses the bug
	changeName     func(name string) string
	changeClaim    func(c *driver.Claim, n int64)
	changeGrant    func(g *driver.Grant, n int64)
	afterGrant     func(ctx context.Context, w *buggyDriver, c driver.Claim)
	answerRefusal  func(w *buggyDriver, c driver.Claim, err error, n int64) (driver.Grant, error)
	renew          func(ctx context.Context, w *buggyDriver, l []driver.LeaseRef) ([]error, error)
	release        func(ctx context.Context, w *buggyDriver, l driver.LeaseRef, n int64) error
}

// FenceNotChecked is the planted bug of the register.
const FenceNotChecked = "fence-not-checked"

var plants = map[string]plant{
	"release-without-token": {
		what:   "a late or second release ends the next lease",
		driver: &hooks{release: releaseAllHolders},
	},
	"renewal-says-yes": {
		what:   "one of two renewals has no effect, but succeeds",
		driver: &hooks{renew: renewHalf},
	},
	"backend-clock-fast": {
		what:   "the backend ends leases after a third of their TTL",
		driver: &hooks{changeClaim: claimThirdOfTTL, renew: renewThirdOfTTL},
	},
	"fence-falls": {
		what: "one of seven fences is a second old",
		driver: &hooks{changeGrant: func(g *driver.Grant, n int64) {
			if n%7 == 0 {
				g.Fence -= 1_000_000
			}
		}},
	},
	"fence-twice": {
		what:   "all fences within half a second are equal",
		driver: &hooks{changeGrant: func(g *driver.Grant, _ int64) { g.Fence &^= 1<<19 - 1 }},
	},
	FenceNotChecked: {what: "the register takes any fence"},
	"granted-though-held": {
		what:   "one of thirty refusals becomes a grant",
		driver: &hooks{answerRefusal: grantRefusal},
	},
	"lost-wake-up": {
		what:   "a waiter is not woken and does not ask again",
		driver: &hooks{hidesAbilities: true, answerRefusal: refuseForAMinute},
	},
	"no-queue": {
		what:   "waiters have no places and retry at random times",
		driver: &hooks{hidesAbilities: true, changeClaim: func(c *driver.Claim, _ int64) { c.Queue = false }, answerRefusal: tryAgainSoon},
	},
	"one-permit-more": {
		what: "a semaphore grants one permit too many",
		driver: &hooks{changeClaim: func(c *driver.Claim, _ int64) {
			if c.Limit != driver.Unlimited {
				c.Limit++
			}
		}},
	},
	"reader-beside-writer": {
		what: "a writer lets readers in",
		driver: &hooks{changeClaim: func(c *driver.Claim, _ int64) {
			if strings.HasSuffix(c.Name, ":rw") {
				c.Weight = 1
			}
		}},
	},
	"names-folded": {
		what:   "names that differ only in case are one lock",
		driver: &hooks{hidesAbilities: true, changeName: strings.ToLower},
	},
	"lease-ends-with-its-claim": {
		what:   "the end of a claim's context ends its lease",
		driver: &hooks{afterGrant: releaseWithContext},
	},
	"release-does-nothing": {
		what:   "one of ten releases has no effect, but succeeds",
		driver: &hooks{release: releaseNothing},
	},
	"loss-not-told":   {what: "a holder never sees that its lease is over", lossDelay: math.MaxInt64},
	"loss-told-late":  {what: "a holder sees its loss a second late", lossDelay: time.Second},
	"two-leaders":     {what: "a leader sees its loss ten seconds late", lossDelay: 10 * time.Second, kind: history.Election},
	"all-or-some":     {what: "an All claims only its first name", onlyFirst: true},
	"majority-of-one": {what: "one node of three is a majority", needs: "redlock", url: oneNode},
}

// Plants returns the names of the planted bugs, sorted, and what each bug is.
func Plants() (names []string, what map[string]string) {
	what = map[string]string{}
	for name, p := range plants {
		what[name] = p.what
	}
	return slices.Sorted(maps.Keys(plants)), what
}

// PlantNeeds returns the URL scheme that a planted bug requires; empty for any.
func PlantNeeds(name string) string { return plants[name].needs }

// oneNode returns the redis URL of one of the nodes of a redlock URL.
func oneNode(rawURL string, worker int) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL
	}
	hosts := strings.Split(u.Host, ",")
	u.Scheme, u.Host = "redis", hosts[worker%len(hosts)]
	return u.String()
}

// buggyDriver is a driver with a bug.
type buggyDriver struct {
	driver.Driver
	*hooks
	calls atomic.Int64

	mu     sync.Mutex
	refuse map[driver.Token]refused
}

type refused struct {
	until time.Time
	err   error
}

// withBug puts a bug into a driver.
func withBug(d driver.Driver, bug *hooks) driver.Driver {
	w := &buggyDriver{Driver: d, hooks: bug, refuse: map[driver.Token]refused{}}
	if bug.hidesAbilities {
		return w
	}
	return transparentDriver{w}
}

// transparentDriver is a buggyDriver whose optional interfaces driver.As still finds.
type transparentDriver struct{ *buggyDriver }

func (u transparentDriver) Unwrap() driver.Driver { return u.Driver }

// AcquireAll fails, so that no request for several names bypasses the bug.
func (u transparentDriver) AcquireAll(context.Context, []driver.Claim) ([]driver.Grant, error) {
	return nil, errors.ErrUnsupported
}

// backendName returns the name that the backend gets.
func (w *buggyDriver) backendName(name string) string {
	if w.changeName == nil {
		return name
	}
	return w.changeName(name)
}

func (w *buggyDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	n := w.calls.Add(1)
	w.mu.Lock()
	r := w.refuse[c.Token]
	w.mu.Unlock()
	if time.Now().Before(r.until) {
		return driver.Grant{}, r.err
	}
	sent := c
	sent.Name = w.backendName(c.Name)
	if w.changeClaim != nil {
		w.changeClaim(&sent, n)
	}
	g, err := w.Driver.Acquire(ctx, sent)
	if errors.Is(err, driver.ErrHeld) && w.answerRefusal != nil {
		return w.answerRefusal(w, c, err, n)
	}
	if err != nil {
		return g, err
	}
	g.TTL = max(g.TTL, c.TTL) // so that the client does not notice a shorter TTL
	if w.changeGrant != nil {
		w.changeGrant(&g, n)
	}
	if w.afterGrant != nil {
		w.afterGrant(ctx, w, sent)
	}
	return g, nil
}

func (w *buggyDriver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	sent := slices.Clone(leases)
	for i := range sent {
		sent[i].Name = w.backendName(sent[i].Name)
	}
	if w.renew != nil {
		return w.renew(ctx, w, sent)
	}
	return w.Driver.Renew(ctx, sent)
}

func (w *buggyDriver) Release(ctx context.Context, l driver.LeaseRef) error {
	l.Name = w.backendName(l.Name)
	if w.release != nil {
		return w.release(ctx, w, l, w.calls.Add(1))
	}
	return w.Driver.Release(ctx, l)
}

func (w *buggyDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return w.Driver.Inspect(ctx, w.backendName(name))
}
