package locktable_test

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// full is an entry with everything in it, and with values that are easy to find in its
// stored form.
func full() *locktable.Entry {
	return &locktable.Entry{
		Fence: 300, Closed: 7,
		Holders: []locktable.Holder{{
			Token: tokenOf("hold"), Inbox: "in", Owner: driver.Owner{Client: "c", Host: "h", PID: 5, Labels: map[string]string{"b": "2", "a": "1"}},
			Fence: 201, Fences: 100, Weight: driver.Exclusive, Limit: driver.Unlimited, Since: 1, Expires: 2, LockDelay: 3, Wrote: true,
		}},
		Queue: []locktable.Waiter{{
			Token: tokenOf("wait"), Inbox: "out", Fences: 1, Weight: 2, Limit: 4, Since: -1, Expires: 9, LockDelay: 6,
			Value: []byte("v"), Above: []byte{},
		}},
		Broken: []locktable.Broken{{Token: tokenOf("gone"), By: driver.Owner{Client: "boss"}, Until: 11}},
		Value:  locktable.Value{Bytes: []byte("kept"), Fence: 150, At: 12},
	}
}

func corrupt(t tb, b []byte) string {
	t.Helper()
	e, err := locktable.Decode(b)
	var c *locktable.CorruptError
	if !errors.As(err, &c) || e != nil || c.Problem == "" {
		t.Fatalf("%.80q is read as %+v, %v: want a CorruptError", b, e, err)
	}
	return c.Error()
}
