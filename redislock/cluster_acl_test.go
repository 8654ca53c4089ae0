package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The test runs while a slot moves, and then with names of all nodes, so that each node
// gets every command.
func TestAUserWithTheDocumentedRightsCanDoEverythingInACluster(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	url := ""
	for _, node := range nodes {
		url = user(t, node, strings.Join([]string{rights, rightsToPush, rightsToTrack, rightsToList, rightsToDoctor, rightsInCluster}, " "))
	}
	d, other := openDriver(t, url), openDriver(t, url)
	signals := listen(t, other)
	from, to, slot := redistest.Moving(nodes, "job")
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		c, waiter := kind("job"), queued("job")
		c.TTL, waiter.QueueTTL = time.Hour, time.Hour
		gets(t, d, c)
		_, _ = other.Acquire(ctx, waiter)
		owner := from
		redistest.Move(nodes, slot, from, to, func() {
			renews(t, d, c)
			armed(t, owner)
			owner = to // at the second call the keys have moved, but not the slot
		})
		if all := servertest.Lists(t, d, ""); len(all) != 1 || all[0].Name != "job" || len(all[0].Waiters) != 1 {
			t.Errorf("%+v", all)
		}
		releases(t, d, c)
		breaks(t, d, "job", gets(t, other, waiter).Fence)
		hear(t, signals, driver.SignalLost, waiter.Token)
		from, to = to, from
	}
	for _, f := range servertest.FindingsOf(t, d) {
		if strings.Contains(f, "rights") || strings.Contains(f, "push") || strings.Contains(f, "tracking") || strings.Contains(f, "refused") {
			t.Errorf("the doctor finds: %s", f)
		}
	}
	doesEverything(t, d, func() {})
	neverRefused(t, nodes...)
}
