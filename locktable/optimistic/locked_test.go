package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// locking is a client some of whose names are locked.
type locking struct {
	valuesClient
	locked map[string]bool
}

func (c *locking) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	done, err := c.valuesClient.Swap(ctx, swaps)
	for i, s := range swaps {
		if c.locked[s.Name] {
			done[i] = optimistic.Swapped{Err: fmt.Errorf("its row: %w", optimistic.ErrLocked)}
		}
	}
	return done, err
}

// A renewal of a name that is locked fails by itself, with its name, and the others are
// made; also of two leases on one name.
func TestARenewalThatIsLockedFailsByItself(t *testing.T) {
	ctx := context.Background()
	all := newValues(time.Now, time.Minute)
	c := &locking{valuesClient{all, "inbox"}, map[string]bool{}}
	d := locktable.New(optimistic.New(c, "inbox", func(driver.Signal) {}), "inbox")
	var leases []driver.LeaseRef
	for _, name := range []string{"a", "b", "b", "c", "d"} {
		claim := driver.Claim{Name: name, Token: driver.NewToken(), Weight: 1, Limit: 2, TTL: time.Minute}
		if _, err := d.Acquire(ctx, claim); err != nil {
			t.Fatal(err)
		}
		leases = append(leases, driver.LeaseRef{Name: name, Token: claim.Token, TTL: time.Hour})
	}
	c.locked["b"], c.locked["d"] = true, true
	answers, err := d.Renew(ctx, leases)
	if err != nil {
		t.Fatal(err)
	}
	for i, answer := range answers {
		locked := c.locked[leases[i].Name]
		failed, ok := errors.AsType[*driver.Error](answer)
		if errors.Is(answer, optimistic.ErrLocked) != locked || locked && (!ok || failed.Name != leases[i].Name) || !locked && answer != nil {
			t.Errorf("%s: %v; want it locked: %t", leases[i].Name, answer, locked)
		}
	}
}
