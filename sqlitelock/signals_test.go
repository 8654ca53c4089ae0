package sqlitelock

import (
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestAWaiterInAnotherDriverHearsOfItsGrant(t *testing.T) {
	for name, prepare := range map[string]func(*lockDriver) *lockDriver{
		"by wake-ups": func(d *lockDriver) *lockDriver { return d },
		"by polling":  deafen,
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			a, b := prepare(open(t, path, nil)), prepare(open(t, path, nil))
			heard, others := listen(t, b), listen(t, a)
			for range 5 {
				holder, waiter := mutex("job"), queued("job")
				gets(t, a, holder)
				waits(t, b, waiter)
				releases(t, a, holder)
				s := hear(t, heard)
				if s.Kind != driver.SignalGranted || s.Token != waiter.Token || s.Fences != 1 {
					t.Fatalf("heard %+v", s)
				}
				if g := gets(t, b, waiter); g.Fence != s.Fence {
					t.Fatalf("the signal says fence %d, the grant %d", s.Fence, g.Fence)
				}
				releases(t, b, waiter)
			}
			if len(others) > 0 {
				t.Errorf("the other driver heard %+v", <-others)
			}
		})
	}
}

func TestASignalForTheSameDriverIsThereWhenTheCallReturns(t *testing.T) {
	d := open(t, file(t), nil)
	heard := listen(t, d)
	holder, waiter := mutex("job"), queued("job")
	gets(t, d, holder)
	waits(t, d, waiter)
	releases(t, d, holder)
	if len(heard) != 1 {
		t.Fatal("not heard at once")
	}
	if s := <-heard; s.Token != waiter.Token {
		t.Fatalf("heard %+v", s)
	}
	if n := ask(t, d, "SELECT count(*) FROM signals"); n != 0 {
		t.Fatalf("%d rows for nobody", n)
	}
}

func TestAHolderHearsThatItsLeaseWasBroken(t *testing.T) {
	for name, prepare := range map[string]func(*lockDriver) *lockDriver{
		"by wake-ups": func(d *lockDriver) *lockDriver { return d },
		"by polling":  deafen,
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			a, b := prepare(open(t, path, nil)), open(t, path, nil)
			heard := listen(t, a)
			c := mutex("job")
			g := gets(t, a, c)
			noError(t, b.Break(ctx, "job", g.Fence, 0, driver.Owner{Host: "desk"}))
			if s := hear(t, heard); s.Kind != driver.SignalLost || s.Token != c.Token {
				t.Fatalf("heard %+v", s)
			}
		})
	}
}

func TestOldSignalsAreDropped(t *testing.T) {
	c := clock()
	path := file(t)
	a, b := open(t, path, &Options{now: c.Now}), open(t, path, &Options{now: c.Now})
	for i := range 10 {
		name := "job " + strconv.Itoa(i)
		holder := mutex(name)
		gets(t, a, holder)
		waits(t, b, queued(name))
		releases(t, a, holder)
	}
	rows := func() int64 { return ask(t, a, "SELECT count(*) FROM signals") }
	a.table.tidyEvery = 1
	gets(t, a, mutex("x"))
	if n := rows(); n != 10 {
		t.Fatalf("%d rows are left of ten new ones", n)
	}
	c.Advance(signalLife + time.Second)
	gets(t, a, mutex("y"))
	if n := rows(); n != 0 {
		t.Fatalf("%d old rows are left", n)
	}
}
