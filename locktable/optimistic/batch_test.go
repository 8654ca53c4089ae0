package optimistic_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// counting is a client that counts its requests, and whose clock needs a while for each
// thing that it is asked, as that of a busy machine does.
type counting struct {
	valuesClient
	loads, swaps int
	late         *time.Duration // what the clock has gone on
	apiece       time.Duration
}

func (c *counting) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	c.loads++
	return c.valuesClient.Load(ctx, names)
}

func (c *counting) Time(ctx context.Context) (optimistic.Window, error) {
	*c.late += c.apiece
	return c.valuesClient.Time(ctx)
}

func (c *counting) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	c.swaps++
	return c.valuesClient.Swap(ctx, swaps)
}

// A thousand renewals are one request of the store, even where computing them takes more
// time than a window is wide.
func TestAThousandStepsAreOneRequest(t *testing.T) {
	if loads, swaps := thousand(t, 80*time.Microsecond); loads != 0 || swaps != 1 {
		t.Errorf("%d loads and %d swaps; want one swap", loads, swaps)
	}
}

// Where that takes many times as long as a window is wide, they are not a thousand.
func TestAThousandStepsOnASlowMachineAreSomeRequests(t *testing.T) {
	if loads, swaps := thousand(t, 400*time.Microsecond); loads != 0 || swaps > 20 {
		t.Errorf("%d loads and %d swaps; want at most 20 swaps", loads, swaps)
	}
}

// thousand renews a thousand leases on a machine that needs so long for each.
func thousand(t *testing.T, apiece time.Duration) (loads, swaps int) {
	t.Helper()
	ctx := context.Background()
	began, late := time.Now(), time.Duration(0)
	v := newValues(func() time.Time { return began.Add(late) }, 50*time.Millisecond)
	c := &counting{valuesClient: valuesClient{v, "inbox"}, late: &late, apiece: apiece}
	d := locktable.New(optimistic.New(c, "inbox", func(driver.Signal) {}), "inbox")
	var leases []driver.LeaseRef
	for i := range 1000 {
		claim := driver.Claim{
			Name: fmt.Sprintf("job %d", i), Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute,
		}
		if _, err := d.Acquire(ctx, claim); err != nil {
			t.Fatal(err)
		}
		leases = append(leases, driver.LeaseRef{Name: claim.Name, Token: claim.Token, TTL: 2 * time.Minute})
	}
	c.loads, c.swaps = 0, 0
	answers, err := d.Renew(ctx, leases)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range answers {
		if err != nil {
			t.Fatalf("lease %d: %v", i, err)
		}
	}
	return c.loads, c.swaps
}
