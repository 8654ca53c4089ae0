package locktable_test

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// fullEntry returns an entry whose fields are all set, to values that are easy to find in
// its stored form.
func fullEntry() *locktable.Entry {
	return &locktable.Entry{
		Fence: 300, Closed: 7,
		Holders: []locktable.Holder{{
			ClaimInfo: locktable.ClaimInfo{Token: tokenOf("hold"), Inbox: "in", Owner: driver.Owner{Client: "c", Host: "h", PID: 5, Labels: map[string]string{"b": "2", "a": "1"}}, Fences: 100, Weight: driver.Exclusive, Limit: driver.Unlimited, LockDelay: 3, TTL: 4},
			Fence:     201, Since: 1, Expires: 2, Wrote: true,
		}},
		Queue: []locktable.Waiter{{
			ClaimInfo: locktable.ClaimInfo{Token: tokenOf("wait"), Inbox: "out", Fences: 1, Weight: 2, Limit: 4, LockDelay: 6, TTL: 7},
			Since:     -1, Expires: 9, Value: []byte("v"), ValueBelow: []byte{},
		}},
		Broken: []locktable.Broken{{Token: tokenOf("gone"), By: driver.Owner{Client: "boss"}, Until: 11}},
		Value:  locktable.Value{Bytes: []byte("kept"), Fence: 150, At: 12},
	}
}

func wantCorrupt(t tb, b []byte) string {
	t.Helper()
	e, err := locktable.Decode(b)
	var c *locktable.CorruptError
	if !errors.As(err, &c) || e != nil || c.Problem == "" {
		t.Fatalf("%.80q is decoded to %+v, %v; want a CorruptError", b, e, err)
	}
	return c.Error()
}

// seedEntries are the first inputs of FuzzDecode. They are encoded each time, so they
// stay valid when the stored form changes.
func seedEntries(t tb) []*locktable.Entry {
	headFits, lasting, marked := fullEntry(), fullEntry(), fullEntry()
	headFits.Closed, headFits.Holders = 0, nil // the head of its queue fits, but waits
	lasting.Closed, lasting.Holders[0].Expires, lasting.Queue[0].Expires = 1<<53-1, 1<<53-1, 1<<53-1
	marked.Marks = []locktable.Mark{{Token: tokenOf("mark"), Inbox: "in", Until: 13}}
	all := []*locktable.Entry{{}, fullEntry(), headFits, lasting, marked}
	fx := newFixture(t)
	for i, c := range []*driver.Claim{permits("a", 1, 3), permits("b", 2, 3), mutex("c"), reader("d"), withForce(permits("e", 1, 2))} {
		c.Fences, c.LockDelay, c.Owner.Labels = 1+i, sec, map[string]string{"k": "v", "job": "42"}
		c.Value = []byte{byte(i)}
		_, _ = fx.acquire(c)
		all = append(all, clone(fx.entry))
	}
	return all
}
