package swap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// failingClient is a client whose swaps of some names fail.
type failingClient struct {
	valuesClient
	failures map[string]error
}

func (c *failingClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	done, err := c.valuesClient.Swap(ctx, swaps)
	for i, s := range swaps {
		if c.failures[s.Name] != nil {
			done[i] = swap.Swapped{Err: c.failures[s.Name]}
		}
	}
	return done, err
}

// acquireAll acquires a lease of each name.
func (c *failingClient) acquireAll(t *testing.T, names ...string) (*locktable.Driver, []driver.LeaseRef) {
	d := newDriver(c)
	var leases []driver.LeaseRef
	for _, name := range names {
		claim := driver.Claim{Name: name, Token: driver.NewToken(), Weight: 1, Limit: 2, TTL: time.Minute}
		must(d.Acquire(t.Context(), claim))(t)
		leases = append(leases, driver.LeaseRef{Name: name, Token: claim.Token, TTL: time.Hour})
	}
	return d, leases
}

// If a name is locked, or its swap fails, only the renewals of this name fail, with its
// name, even if it has two leases.
func TestAFailedSwapFailsOnlyItsRenewals(t *testing.T) {
	for what, swapped := range map[string]error{
		"locked":    fmt.Errorf("its row: %w", swap.ErrLocked),
		"too large": &driver.Error{Err: errors.New("it is full"), Permanent: true},
		"lost":      errors.New("no answer"),
	} {
		t.Run(what, func(t *testing.T) {
			c := &failingClient{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]error{}}
			d, leases := c.acquireAll(t, "a", "b", "b", "c", "d")
			c.failures["b"], c.failures["d"] = swapped, swapped
			answers, err := d.Renew(t.Context(), leases)
			noError(t, err)
			for i, answer := range answers {
				wantFailure := c.failures[leases[i].Name] != nil
				failed, ok := errors.AsType[*driver.Error](answer)
				if wantFailure != (answer != nil) || wantFailure && (!ok || failed.Name != leases[i].Name) {
					t.Errorf("%s: %v; want it to fail: %t", leases[i].Name, answer, wantFailure)
				}
			}
		})
	}
}

// If each swap fails, the store is the problem, so Renew returns one error for all.
func TestRenewalsThatAllFailFailTogether(t *testing.T) {
	c := &failingClient{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]error{}}
	d, leases := c.acquireAll(t, "a", "b")
	down := errors.New("no answer")
	c.failures["a"], c.failures["b"] = down, down
	if answers, err := d.Renew(t.Context(), leases); !errors.Is(err, down) {
		t.Errorf("Renew: %v, %v; want %v for the request", answers, err, down)
	}
}

// A failed renewal does not prevent the others, however many there are.
func TestAFailedRenewalDoesNotPreventOthers(t *testing.T) {
	c := &failingClient{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]error{}}
	names := make([]string, 1200)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
	}
	d, leases := c.acquireAll(t, names...)
	c.failures["job-0"] = swap.ErrLocked
	must(d.Renew(t.Context(), leases))(t)
	e, err := d.Inspect(t.Context(), "job-1199")
	noError(t, err)
	if left := e.Holders[0].ExpiresIn; left < 30*time.Minute {
		t.Errorf("the last lease has %v left, and was renewed for an hour", left)
	}
}

// hangingClient is a client whose waiting claims on names with an x get no answer.
type hangingClient struct {
	valuesClient
	loaded map[string]time.Time // when each name was last loaded alone
}

func (c *hangingClient) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	if len(names) == 1 {
		c.loaded[names[0]] = time.Now()
	}
	return c.valuesClient.Load(ctx, names)
}

func (c *hangingClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if strings.HasPrefix(swaps[0].Name, "x") && len(swaps[0].Entry.Queue) > 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.valuesClient.Swap(ctx, swaps)
}

// Renewals without a change run one by one. If claims of the same client on some of their
// names hang, only the renewals of these names fail, after a second. The others succeed
// at once.
func TestHangingClaimsDelayNoOtherRenewals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := &hangingClient{valuesClient{newValues(time.Now, time.Minute), "inbox"}, map[string]time.Time{}}
		d := newDriver(c)
		claims, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		var leases []driver.LeaseRef
		for _, held := range exclusiveClaims("x1", "y", "x2", "z") {
			must(d.Acquire(t.Context(), held))(t)
			leases = append(leases, renewal(held, held.TTL)...)
			if waiter := queuedClaim(); held.Name[0] == 'x' {
				waiter.Name = held.Name
				go func() { _, _ = d.Acquire(claims, waiter) }()
			}
		}
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answers, err := d.Renew(ctx, leases)
		noError(t, err)
		if took := time.Since(began); took != time.Second {
			t.Errorf("the renewals took %v; want 1s", took)
		}
		for i, l := range leases {
			hangs := l.Name[0] == 'x'
			if hangs != errors.Is(answers[i], driver.ErrUnavailable) || !hangs && (answers[i] != nil || !c.loaded[l.Name].Equal(began)) {
				t.Errorf("%s: %v, loaded after %v", l.Name, answers[i], c.loaded[l.Name].Sub(began))
			}
		}
		giveUp()
		synctest.Wait()
		renewAll(t, d, leases)
	})
}
