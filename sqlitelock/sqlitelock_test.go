package sqlitelock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/sqlswap"
)

// drivertest tests the rules of every driver. These tests are for the rules of a file.

func TestTwoDriversOfAFileExcludeEachOther(t *testing.T) {
	path := file(t)
	a, b := open(t, path, nil), open(t, path, nil)
	first, second := mutex("job"), mutex("job")
	g := gets(t, a, first)
	isRefused(t, b, second)
	releases(t, a, first)
	if h := gets(t, b, second); h.Fence <= g.Fence {
		t.Fatalf("fence %d after %d", h.Fence, g.Fence)
	}
}

func TestLeasesOutliveTheDriver(t *testing.T) {
	path := file(t)
	a, err := concrete(OpenFile(ctx, path, nil))
	noError(t, err)
	c := mutex("job")
	g := gets(t, a, c)
	noError(t, a.Close())
	e, err := open(t, path, nil).Inspect(ctx, "job")
	if err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != g.Fence {
		t.Fatalf("after reopening: %+v, %v", e, err)
	}
}

func TestTheClockOfTheFileDecidesExpiry(t *testing.T) {
	c := clock()
	path := file(t)
	a, b := open(t, path, &Options{now: c.Now}), open(t, path, &Options{now: c.Now})
	first := mutex("job")
	gets(t, a, first)
	c.Advance(first.TTL - time.Microsecond)
	isRefused(t, b, mutex("job"))
	c.Advance(time.Microsecond)
	gets(t, b, mutex("job"))
	if err := a.Release(ctx, lease(first)); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Fatalf("the expired holder released: %v", err)
	}
}

func TestNamesAreComparedByteForByte(t *testing.T) {
	d := open(t, file(t), nil)
	names := []string{"job", "Job", "JOB", "job ", " job", "jöb", "jo\u0308b", "j%b", "j_b", "'; DROP TABLE entries; --", strings.Repeat("x", 255)}
	for _, n := range names {
		gets(t, d, mutex(n))
	}
	var listed []string
	for e, err := range d.List(ctx, "") {
		noError(t, err)
		listed = append(listed, e.Name)
	}
	slices.Sort(names)
	if !slices.Equal(listed, names) {
		t.Fatalf("listed %q", listed)
	}
}

func TestListGoesOnBehindADamagedRow(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	for _, name := range []string{"a", "b", "c"} {
		gets(t, d, mutex(name))
	}
	raw(t, path, "UPDATE entries SET entry = x'3f' WHERE name = CAST('b' AS BLOB)")
	var listed []string
	for e, err := range d.List(ctx, "") {
		if (err != nil) != (e.Name == "b") {
			t.Errorf("%s: %v", e.Name, err)
		}
		listed = append(listed, e.Name)
	}
	if !slices.Equal(listed, []string{"a", "b", "c"}) {
		t.Errorf("listed %q", listed)
	}
}

func TestListFindsAPrefixAcrossPages(t *testing.T) {
	d := open(t, file(t), nil)
	const n = 2*sqlswap.PageSize + 1
	for i := range n {
		gets(t, d, mutex("job:"+strings.Repeat("a", i%200)+string(rune(0x4E00+i))))
	}
	gets(t, d, mutex("joa"))
	gets(t, d, mutex("job;"))
	var got []string
	for e, err := range d.List(ctx, "job:") {
		noError(t, err)
		got = append(got, e.Name)
		gets(t, d, mutex("other:"+e.Name)) // a caller may use the driver while it ranges
	}
	if len(got) != n || !slices.IsSorted(got) {
		t.Fatalf("%d of %d names, sorted: %v", len(got), n, slices.IsSorted(got))
	}
}

func TestABatchIsRenewedAcrossTransactions(t *testing.T) {
	d := open(t, file(t), nil)
	var leases []driver.LeaseRef
	for i := range 2*batch + 1 {
		c := mutex("job " + string(rune(0x4E00+i)))
		gets(t, d, c)
		leases = append(leases, lease(c))
	}
	leases[batch].Token = driver.NewToken()
	answers, err := d.Renew(ctx, leases)
	noError(t, err)
	for i, err := range answers {
		if (i == batch) != errors.Is(err, driver.ErrNoSuchLease) {
			t.Fatalf("lease %d: %v", i, err)
		}
	}
}

func TestOptionsThatCannotBeKeptAreRefused(t *testing.T) {
	for _, o := range []*Options{{Retention: time.Second}, {Retention: -1}, {Poll: time.Microsecond}, {Poll: time.Minute}, {Poll: -1}} {
		if _, err := OpenFile(ctx, file(t), o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestAfterCloseAllIsRefused(t *testing.T) {
	d, err := concrete(OpenFile(ctx, file(t), nil))
	noError(t, err)
	for range 2 {
		noError(t, d.Close())
	}
	_, acquire := d.Acquire(ctx, mutex("job"))
	_, diagnose := d.Diagnose(ctx)
	for _, err := range []error{acquire, diagnose, d.Release(ctx, lease(mutex("job")))} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestCloseMayComeAtAnyTime(t *testing.T) {
	path := file(t)
	for range 20 {
		d, err := concrete(OpenFile(ctx, path, nil))
		noError(t, err)
		ended := make(chan error)
		for range 4 {
			go func() {
				for {
					if _, err := d.Acquire(ctx, queued("job")); err != nil && !errors.Is(err, driver.ErrHeld) {
						ended <- err
						return
					}
				}
			}()
		}
		noError(t, d.Close())
		for range 4 {
			if err := <-ended; !errors.Is(err, driver.ErrClosed) {
				t.Fatal(err)
			}
		}
	}
}

func TestAnEndedContextEndsTheCall(t *testing.T) {
	d := open(t, file(t), nil)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := d.Acquire(ended, mutex("job")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if e, err := d.Inspect(ctx, "job"); err != nil || len(e.Holders) != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
}
