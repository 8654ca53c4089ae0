package drivertest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// ignoreEnd is a network whose server ignores the end of some requests.
func ignoreEnd(which func(p *request) bool) network {
	return network{isLate: func(p *request, _ []*request, late bool) bool { return late && !which(p) }}
}

// isClaimThat returns a function that reports whether a request is a fitting claim.
func isClaimThat(fit func(c *driver.Claim) bool) func(p *request) bool {
	return func(p *request) bool { return p.claim != nil && fit(p.claim) }
}

// acquireAfterCall is an Acquire whose claim arrives after the call, if that has little
// time.
func acquireAfterCall(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
	if time.Until(driver.End(ctx)) > 50*time.Millisecond || ctx.Err() != nil {
		return d.Acquire(ctx, c)
	}
	<-ctx.Done()
	time.AfterFunc(2*time.Millisecond, func() { _, _ = d.Acquire(context.Background(), c) })
	return driver.Grant{}, ctx.Err()
}

// releaseCacher is a driver that does not ask again about a token that was not held.
type releaseCacher struct {
	*faulty
	mu   *sync.Mutex
	gone map[driver.Token]bool
}

func (f releaseCacher) Release(ctx context.Context, l driver.LeaseRef) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone[l.Token] {
		return driver.ErrNoSuchLease
	}
	err := f.faulty.Release(ctx, l)
	f.gone[l.Token] = errors.Is(err, driver.ErrNoSuchLease)
	return err
}

var lateFaults = []fault{{
	name:     "the end is not looked at when trying",
	mustFail: []string{"End/ATryThatComesAfterItsEndChangesNothing", "End/AmongManyRequestsOnlyTheLateOnesChangeNothing", "End/WithoutADeadlineTheEndIsMaxRequestAway"},
	network:  ignoreEnd(isClaimThat(func(c *driver.Claim) bool { return !c.Queue && !c.Force })),
}, {
	name:     "the end is not looked at when queueing",
	mustFail: []string{"End/AClaimToQueueThatComesAfterItsEndChangesNothing", "End/AmongManyRequestsOnlyTheLateOnesChangeNothing"},
	network:  ignoreEnd(isClaimThat(func(c *driver.Claim) bool { return c.Queue })),
}, {
	name:     "the end is not looked at when forcing",
	mustFail: []string{"End/AForceThatComesAfterItsEndChangesNothing", "End/ALateRepeatOfAForceBreaksNoLaterHolder", "End/AmongManyRequestsOnlyTheLateOnesChangeNothing"},
	network:  ignoreEnd(isClaimThat(func(c *driver.Claim) bool { return c.Force })),
}, {
	name: "the end is not looked at when the token is known",
	mustFail: []string{
		"End/ALateRepeatDoesNotExtendALease", "End/ALateRepeatDoesNotKeepAPlace", "End/ALateRepeatDoesNotExtendAPromotedGrant",
		"End/ALateRepeatOfAReleasedClaimIsNotGranted", "End/ALateRepeatOfAWaiterThatLeftDoesNotQueueAgain",
	},
	network: ignoreEnd(func(p *request) bool { return p.known }),
}, {
	name: "the end of a release is not looked at", mustFail: []string{"End/AReleaseWithAnEndDoesNothingAfterIt"},
	network: ignoreEnd(func(p *request) bool { return p.claim == nil }),
}, {
	name: "a release with an end is always late", mustFail: []string{"End/AReleaseWithAnEndReleasesBeforeIt"},
	network: network{isLate: func(p *request, _ []*request, late bool) bool {
		return late || p.hasEnd && p.claim == nil
	}},
}, {
	name: "what was held up is always late", mustFail: []string{"End/RequestsBeforeTheirEndAreAnswered"},
	network: network{isLate: func(p *request, others []*request, late bool) bool {
		return late || slices.Contains(others, p)
	}},
}, {
	name: "a token that was not held is not released again", mustFail: []string{"End/TwoReleasesSettleAnUnknownClaim"},
	driver: func(d *faulty) driver.Driver { return releaseCacher{d, &sync.Mutex{}, map[driver.Token]bool{}} },
}, {
	name: "those that come together have the end of the last", mustFail: []string{"End/AmongManyRequestsOnlyTheLateOnesChangeNothing"},
	network: network{isLate: func(p *request, others []*request, late bool) bool {
		return late && !slices.ContainsFunc(others, func(o *request) bool { return o.end.After(p.end.Add(time.Second / 2)) })
	}},
}, {
	name: "without a deadline there is no end", mustFail: []string{"End/WithoutADeadlineTheEndIsMaxRequestAway"},
	network: network{isLate: func(p *request, _ []*request, late bool) bool {
		return late && !p.unbounded
	}},
}, {
	name: "a call waits for its answer", mustFail: []string{"End/ACallReturnsSoonAfterItsCtxEnds", "End/AnAnswerAfterTheEndOfTheCtxIsNotAGrant"},
	network: network{awaitAnswer: func(_ context.Context, done <-chan struct{}) {
		<-done
	}},
}, {
	name: "a call sees only the deadline of its ctx", mustFail: []string{"End/ACallReturnsSoonAfterItsCtxEnds", "End/AnAnswerAfterTheEndOfTheCtxIsNotAGrant"},
	network: network{awaitAnswer: func(ctx context.Context, done <-chan struct{}) {
		select {
		case <-done:
		case <-time.After(time.Until(driver.End(ctx))):
		}
	}},
}, {
	name: "what comes after the last release of its token is granted", mustFail: []string{"End/TwoReleasesSettleALateClaim"},
	network: ignoreEnd(isClaimThat(func(c *driver.Claim) bool { return true })),
}, {
	name: "a request outlives its call", mustFail: []string{"End/TheEffectOfACallIsVisibleWhenItReturns", "End/OneReleaseAfterTheCallLeavesNothing"},
	driver:    replaceAcquire(acquireAfterCall),
	noNetwork: true,
}}
