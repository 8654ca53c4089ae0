package swap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// counting is a client that counts its requests, and whose clock needs a while for each
// question, as on a busy machine.
type counting struct {
	valuesClient
	loads, swaps int
	late         *time.Duration // what the clock has gone on
	perRenewal   time.Duration
	half         bool // the first half of each batch of swaps fails
}

func (c *counting) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	c.loads++
	return c.valuesClient.Load(ctx, names)
}

func (c *counting) Time(ctx context.Context) (swap.Window, error) {
	*c.late += c.perRenewal
	return c.valuesClient.Time(ctx)
}

func (c *counting) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	c.swaps++
	if !c.half {
		return c.valuesClient.Swap(ctx, swaps)
	}
	vain := len(swaps) / 2
	done, err := c.valuesClient.Swap(ctx, swaps[vain:])
	return append(make([]swap.Swapped, vain), done...), err
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

// If some swaps of a request fail, because it took too long to read it all, the rest is
// one request again, and not one for each name.
func TestAThousandStepsOfWhichSomeAreInVain(t *testing.T) {
	d, c, leases := thousandLeases(t, 0)
	c.half = true
	renewsAll(t, d, leases)
	if c.swaps > 20 {
		t.Errorf("%d swaps; want at most 20", c.swaps)
	}
}

// thousand renews a thousand leases on a machine that needs perRenewal for each.
func thousand(t *testing.T, perRenewal time.Duration) (loads, swaps int) {
	t.Helper()
	d, c, leases := thousandLeases(t, perRenewal)
	renewsAll(t, d, leases)
	return c.loads, c.swaps
}

func thousandLeases(t *testing.T, perRenewal time.Duration) (*locktable.Driver, *counting, []driver.LeaseRef) {
	t.Helper()
	began, late := time.Now(), time.Duration(0)
	v := newValues(func() time.Time { return began.Add(late) }, 50*time.Millisecond)
	c := &counting{valuesClient: valuesClient{v, "inbox"}, late: &late, perRenewal: perRenewal}
	d := locktable.New(swap.New(c, "inbox", func(driver.Signal) {}), "inbox")
	var leases []driver.LeaseRef
	for i := range 1000 {
		claim := driver.Claim{
			Name: fmt.Sprintf("job %d", i), Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute,
		}
		must(d.Acquire(t.Context(), claim))(t)
		leases = append(leases, driver.LeaseRef{Name: claim.Name, Token: claim.Token, TTL: 2 * time.Minute})
	}
	c.loads, c.swaps = 0, 0
	return d, c, leases
}

func renewsAll(t *testing.T, d driver.Driver, leases []driver.LeaseRef) {
	t.Helper()
	answers, err := d.Renew(t.Context(), leases)
	noError(t, err)
	for i, err := range answers {
		if err != nil {
			t.Fatalf("lease %d: %v", i, err)
		}
	}
}
