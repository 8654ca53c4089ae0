package redislock_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// List decodes most stored states in Go, and Inspect decodes them in a script. Both must
// return the same entry for a name in each state.
func TestListAndInspectAgree(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	claim := func(name string, change func(*driver.Claim)) driver.Claim {
		c := mutex(name)
		c.Owner = basictest.FullOwner()
		change(&c)
		gets(t, d, c)
		return c
	}
	claim("exclusive", func(*driver.Claim) {})
	claim("of many fences", func(c *driver.Claim) { c.Fences = 7 })
	claim("delayed", func(c *driver.Claim) { c.LockDelay = time.Minute })
	claim("valued", func(c *driver.Claim) { c.Value = []byte("v\x00w") })
	claim("empty value", func(c *driver.Claim) { c.Value = []byte{} })
	released := claim("kept", func(*driver.Claim) {})
	noError(t, d.Release(ctx, driver.LeaseRef{Name: released.Name, Token: released.Token, MinHold: time.Minute}))
	claim("shared", func(c *driver.Claim) { c.Weight, c.Limit = 1, 3 })
	claim("with a missing key", func(c *driver.Claim) { c.Weight, c.Limit = 1, 3 })
	server.Do("DEL", "pawl:{with a missing key}d")
	claim("waited for", func(*driver.Claim) {})
	waiter := queued("waited for")
	waiter.QueueTTL = time.Hour
	servertest.Waits(t, d, waiter)
	watched := claim("watched", func(c *driver.Claim) { c.Value = []byte("w") })
	watch(t, d, watched.Name)
	free := claim("free with a value", func(c *driver.Claim) { c.Value = []byte("v") })
	releases(t, d, free)
	closed := claim("closed", func(c *driver.Claim) { c.TTL, c.LockDelay = time.Second, time.Hour })
	becomes(t, "the lease expires", func() bool { return len(must(d.Inspect(ctx, closed.Name))(t).Holders) == 0 })
	version := versionOf(t, server, "pawl:{exclusive}s")
	for name, state := range map[string]string{
		"odd": "x", "newer": string([]byte{version[0] + 1, 0}) + string(make([]byte, 24)), "cut": version + "\x01" + string(make([]byte, 30)),
		"half": version + "\x00" + float64Bytes(1.5) + float64Bytes(0) + float64Bytes(0), "huge": version + "\x00" + float64Bytes(1<<52) + float64Bytes(0) + float64Bytes(0),
		"late": version + "\x00" + float64Bytes(1) + float64Bytes(1<<53) + float64Bytes(0), "watched oddly": version + "\x08" + float64Bytes(1) + float64Bytes(0) + float64Bytes(0) + float64Bytes(-1),
	} {
		server.Do("SET", "pawl:{"+name+"}s", state)
	}
	listed := map[string]driver.Entry{}
	failed := map[string]bool{}
	for e, err := range d.List(ctx, "") {
		listed[e.Name], failed[e.Name] = e, err != nil
	}
	near := func(a, b time.Duration) bool { return a-b < time.Minute && b-a < time.Minute }
	for name, e := range listed {
		want, err := d.Inspect(ctx, name)
		if failed[name] || err != nil {
			if failed[name] != (err != nil) {
				t.Errorf("%s: failed is %v in List, but Inspect returns the error %v", name, failed[name], err)
			}
			continue
		}
		same := e.Fence == want.Fence && near(e.ClosedFor, want.ClosedFor) && len(e.Holders) == len(want.Holders) &&
			len(e.Waiters) == len(want.Waiters) && bytes.Equal(e.Value, want.Value) && e.ValueFence == want.ValueFence
		for i := 0; same && i < len(e.Holders); i++ {
			a, b := e.Holders[i], want.Holders[i]
			same = a.Fence == b.Fence && a.Permits == b.Permits && a.Limit == b.Limit && a.Released == b.Released &&
				a.Since.Equal(b.Since) && a.TTL == b.TTL && near(a.ExpiresIn, b.ExpiresIn) && reflect.DeepEqual(a.Owner, b.Owner)
		}
		if !same {
			t.Errorf("%s: List returns\n%+v, Inspect\n%+v", name, e, want)
		}
	}
	if len(listed) != 18 || !failed["with a missing key"] {
		t.Errorf("List returns %d names: %v; failed: %v", len(listed), listed, failed)
	}
}

func float64Bytes(f float64) string {
	return string(binary.BigEndian.AppendUint64(nil, math.Float64bits(f)))
}
