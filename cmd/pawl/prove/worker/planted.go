package worker

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/driver"
)

// A plant is a bug that a run has on purpose, to show that the checker would see one like
// it. It changes what the product does at its edges: what reaches the backend, what the
// backend answers, and what the holder of a lease learns.
type plant struct {
	what  string
	url   func(url string, worker int) string
	wrap  func(w *wrapped) // puts the bug into the driver
	alone bool             // the driver has no other abilities, so that nothing passes the bug by
	lease func(l Lease, name history.Name) Lease
	some  bool   // All takes only its first name
	needs string // the scheme of the URL that it needs; empty for any
}

// FenceNotChecked is the planted bug of the register.
const FenceNotChecked = "fence-not-checked"

var plants = map[string]plant{
	"release-without-token": {
		what: "a late or second release ends the next lease",
		wrap: func(w *wrapped) { w.release = releaseAnybody },
	},
	"renewal-says-yes": {
		what: "one renewal of two does nothing, and claims success",
		wrap: func(w *wrapped) { w.renew = renewHalf },
	},
	"backend-clock-fast": {
		what: "the backend ends leases after a third of their TTL",
		wrap: func(w *wrapped) { w.claim, w.renew = claimThird, renewThird },
	},
	"fence-falls": {
		what: "one fence of seven is a second old",
		wrap: func(w *wrapped) {
			w.grant = func(g *driver.Grant, n int64) {
				if n%7 == 0 {
					g.Fence -= 1_000_000
				}
			}
		},
	},
	"fence-twice": {
		what: "all fences of half a second are the same",
		wrap: func(w *wrapped) { w.grant = func(g *driver.Grant, _ int64) { g.Fence &^= 1<<19 - 1 } },
	},
	FenceNotChecked: {what: "the register takes any fence"},
	"granted-though-held": {
		what: "one refusal of thirty is a grant",
		wrap: func(w *wrapped) { w.refusal = grantRefusal },
	},
	"lost-wake-up": {
		what:  "a waiter hears nothing, and does not look again",
		alone: true, wrap: func(w *wrapped) { w.refusal = refuseForAMinute },
	},
	"no-queue": {
		what:  "waiters have no places, and try at random",
		alone: true,
		wrap: func(w *wrapped) {
			w.claim = func(c *driver.Claim, _ int64) { c.Queue = false }
			w.refusal = tryAgainSoon
		},
	},
	"one-permit-more": {
		what: "a semaphore grants one permit too many",
		wrap: func(w *wrapped) {
			w.claim = func(c *driver.Claim, _ int64) {
				if c.Limit != driver.Unlimited {
					c.Limit++
				}
			}
		},
	},
	"reader-beside-writer": {
		what: "a writer lets readers in",
		wrap: func(w *wrapped) {
			w.claim = func(c *driver.Claim, _ int64) {
				if strings.HasSuffix(c.Name, ":rw") {
					c.Weight = 1
				}
			}
		},
	},
	"names-folded": {
		what:  "names that differ in case only are one lock",
		alone: true, wrap: func(w *wrapped) { w.folded = true },
	},
	"lease-ends-with-its-claim": {
		what: "the end of the context of a claim ends its lease",
		wrap: func(w *wrapped) { w.granted = releaseAfter },
	},
	"release-does-nothing": {
		what: "one release of ten does nothing, and claims success",
		wrap: func(w *wrapped) { w.release = releaseNothing },
	},
	"loss-not-told": {
		what:  "a holder never hears that its lease is over",
		lease: func(l Lease, _ history.Name) Lease { return deaf{l} },
	},
	"loss-told-late": {
		what:  "a holder hears of a loss a second late",
		lease: func(l Lease, _ history.Name) Lease { return &late{Lease: l, by: time.Second} },
	},
	"two-leaders": {
		what: "a leader hears of a loss ten seconds late",
		lease: func(l Lease, name history.Name) Lease {
			if name.Kind != history.Election {
				return l
			}
			return &late{Lease: l, by: 10 * time.Second}
		},
	},
	"all-or-some": {what: "an All is content with its first name", some: true},
	"majority-of-one": {
		what: "one node of three is a majority", needs: "redlock",
		url: oneNode,
	},
}

// Plants returns the names of the planted bugs, sorted, and what each bug is.
func Plants() (names []string, what map[string]string) {
	what = map[string]string{}
	for name, p := range plants {
		what[name] = p.what
	}
	return slices.Sorted(maps.Keys(plants)), what
}

// PlantNeeds returns the scheme of the URL that a planted bug needs; empty for any.
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

// wrapped is a driver with a bug.
type wrapped struct {
	driver.Driver
	folded  bool
	count   atomic.Int64
	claim   func(c *driver.Claim, n int64)
	grant   func(g *driver.Grant, n int64)
	granted func(ctx context.Context, w *wrapped, c driver.Claim)
	refusal func(w *wrapped, c driver.Claim, err error, n int64) (driver.Grant, error)
	renew   func(ctx context.Context, w *wrapped, l []driver.LeaseRef) ([]error, error)
	release func(ctx context.Context, w *wrapped, l driver.LeaseRef, n int64) error

	mu     sync.Mutex
	refuse map[driver.Token]refused
}

type refused struct {
	until time.Time
	err   error
}

// wrap puts a bug into a driver.
func wrap(d driver.Driver, bug plant) driver.Driver {
	w := &wrapped{Driver: d, refuse: map[driver.Token]refused{}}
	if bug.wrap(w); bug.alone {
		return w
	}
	return unwrappable{w}
}

type unwrappable struct{ *wrapped }

func (u unwrappable) Unwrap() driver.Driver { return u.Driver }

// AcquireAll fails, so that no step of several names passes the bug by.
func (u unwrappable) AcquireAll(context.Context, []driver.Claim) ([]driver.Grant, error) {
	return nil, errors.ErrUnsupported
}

func (w *wrapped) name(n string) string {
	if w.folded {
		return strings.ToLower(n)
	}
	return n
}

func (w *wrapped) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	n := w.count.Add(1)
	w.mu.Lock()
	r := w.refuse[c.Token]
	w.mu.Unlock()
	if time.Now().Before(r.until) {
		return driver.Grant{}, r.err
	}
	sent := c
	sent.Name = w.name(c.Name)
	if w.claim != nil {
		w.claim(&sent, n)
	}
	g, err := w.Driver.Acquire(ctx, sent)
	if errors.Is(err, driver.ErrHeld) && w.refusal != nil {
		return w.refusal(w, c, err, n)
	}
	if err != nil {
		return g, err
	}
	g.TTL = max(g.TTL, c.TTL) // the client sees what it asked for
	if w.grant != nil {
		w.grant(&g, n)
	}
	if w.granted != nil {
		w.granted(ctx, w, sent)
	}
	return g, nil
}

func (w *wrapped) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	sent := slices.Clone(leases)
	for i := range sent {
		sent[i].Name = w.name(sent[i].Name)
	}
	if w.renew != nil {
		return w.renew(ctx, w, sent)
	}
	return w.Driver.Renew(ctx, sent)
}

func (w *wrapped) Release(ctx context.Context, l driver.LeaseRef) error {
	l.Name = w.name(l.Name)
	if w.release != nil {
		return w.release(ctx, w, l, w.count.Add(1))
	}
	return w.Driver.Release(ctx, l)
}

func (w *wrapped) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return w.Driver.Inspect(ctx, w.name(name))
}
