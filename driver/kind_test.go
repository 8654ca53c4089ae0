package driver_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestTheKindOfAHolderAndOfAWaiter(t *testing.T) {
	for _, c := range []struct {
		weight, limit int
		kind          driver.Kind
		note          string // the beginning of the note in an error
	}{
		{driver.Exclusive, driver.Unlimited, driver.KindExclusive, "(fence 7, "},
		{1, driver.Unlimited, driver.KindShared, "(shared, fence 7, "},
		{2, 4, driver.KindPermits, "(2 of 4 permits, fence 7, "},
	} {
		h := driver.Holder{Permits: c.weight, Limit: c.limit, Fence: 7}
		w := driver.Waiter{Permits: c.weight, Limit: c.limit}
		if h.Kind() != c.kind || w.Kind() != c.kind {
			t.Errorf("%d of %d: %q and %q; want %q", c.weight, c.limit, h.Kind(), w.Kind(), c.kind)
		}
		if text := (&driver.HeldError{Name: "x", Holders: 1, Holder: h}).Error(); !strings.Contains(text, c.note) {
			t.Errorf("%q has no %q", text, c.note)
		}
	}
}
