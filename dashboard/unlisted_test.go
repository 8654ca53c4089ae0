package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// While isDamaged is true, a damagedDriver cannot read a single name, but lists names.
type damagedDriver struct {
	engine.Driver
	isDamaged atomic.Bool
}

func (d *damagedDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if d.isDamaged.Load() {
		return driver.Entry{}, errors.New("the row is <damaged>")
	}
	return d.Driver.Inspect(ctx, name)
}

// The page does not call a name free if the driver cannot read it.
func TestAnUnreadableNameIsNotShownAsFree(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		d := &damagedDriver{Driver: engine.Full(memory.Driver())}
		d.isDamaged.Store(true)
		s := newSiteOnDriver(t, d, memory, &dashboard.Options{AllowBreak: true})
		time.Sleep(2 * time.Second)
		page := s.get(t, "name?name=job")
		wantTexts(t, page, "It cannot be read now: ", "the row is &#60;damaged&#62;", "Not known.", "What has happened")
		wantNoTexts(t, page, "It is free.", "Nobody holds it.", "Nobody waits.")
		form := s.get(t, "break?name=job&fence=5")
		wantTexts(t, form, "It cannot be read now: ", "the row is &#60;damaged&#62;", "Break the lease")
		wantNoTexts(t, form, "The name has no lease with this fence now")

		live := s.open(t.Context(), "events?view=name&name=job")
		time.Sleep(2 * time.Second)
		wantTexts(t, live.take(), "It cannot be read now: ")
		d.isDamaged.Store(false)
		time.Sleep(4 * time.Second) // the page keeps an error for less time than a row
		wantTexts(t, live.take(), "It is free.", "Nobody holds it.", "Nobody waits.")
		wantTexts(t, s.get(t, "break?name=job&fence=5"), "The name has no lease with this fence now")
	})
}

// A stream shows a lease that no scan has found yet. After the next scan, the stream
// drops what it read itself.
func TestAStreamDoesNotShowAnEndedLeaseAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.get(t, "") // causes a scan, so that the stream does not begin with one
		c := claim("job", 1)
		g := s.take(t, c)
		live := s.open(t.Context(), "events?view=name&name=job")
		time.Sleep(5 * time.Second)
		wantTexts(t, live.take(), "Held by 1 lease")
		s.release(t, c)
		time.Sleep(5 * time.Second)
		wantTexts(t, live.take(), "It is free.", fmt.Sprint(g.Fence), "Nobody holds it.")
	})
}
