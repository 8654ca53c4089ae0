package memlock

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// countNames returns the number of names with a prefix that m keeps.
func (m *Memory) countNames(prefix string) (n int) {
	for i := range m.table.shards {
		n += len(m.table.shards[i].appendNames(nil, prefix))
	}
	return n
}

// maxUnswept is the number of names that sweeps may leave: the newest of each shard.
const maxUnswept = 64 * 2 * sweepEvery

// acquireNames acquires n names, and releases them if release is true.
func acquireNames(t *testing.T, d driver.Driver, prefix string, n int, release bool) {
	t.Helper()
	for i := range n {
		c := driver.Claim{
			Name: prefix + strconv.Itoa(i), Token: driver.NewToken(), Owner: driver.Owner{Client: "c"},
			Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Second, LockDelay: time.Second,
		}
		if _, err := d.Acquire(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if !release {
			continue
		}
		if err := d.Release(context.Background(), driver.LeaseRef{Name: c.Name, Token: c.Token}); err != nil {
			t.Fatal(err)
		}
	}
}
