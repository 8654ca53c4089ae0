package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The additional rights of a user with Sentinel, and the rights of a user of a Sentinel.
const (
	rightsWithSentinel = "+role"
	rightsOfSentinel   = "&* -@all +hello +ping +subscribe +unsubscribe +sentinel +client|tracking"
)

func TestUsersWithTheDocumentedRightsCanDoEverythingWithSentinel(t *testing.T) {
	nightly(t, "fail-overs")
	t.Parallel()
	group := redistest.StartGroup(t)
	setDownAfter(group.Sentinels, time.Minute)
	for _, s := range []*redistest.Server{group.Master, group.Replica} {
		user(t, s, strings.Join([]string{rights, rightsToPush, rightsToTrack, rightsToList, rightsToDoctor, rightsToWait, rightsWithSentinel}, " "))
	}
	for _, s := range group.Sentinels {
		s.Do(append([]string{"ACL", "SETUSER", "jim", "reset", "on", ">salami"}, strings.Fields(rightsOfSentinel)...)...)
	}
	url := strings.Replace(group.URL(), "redis://", "redis://joe:sesame@", 1)
	d := openDriver(t, url+"&sentinel_username=jim&sentinel_password=salami&wait_replicas=1&wait_timeout=20s")
	signals := listen(t, d)
	c, waiter := mutex("job"), queued("job")
	waiter.QueueTTL = time.Hour
	gets(t, d, c)
	_, _ = d.Acquire(ctx, waiter)
	releases(t, d, c)
	for s := range signals {
		if s.Token == waiter.Token {
			break
		}
	}
	gets(t, d, waiter)
	armed(t, group.Master)
	if all := servertest.Lists(t, d, ""); len(all) != 1 || all[0].Name != "job" {
		t.Errorf("%+v", all)
	}
	for _, f := range servertest.FindingsOf(t, d) {
		if !strings.Contains(f, "persistence") && !strings.Contains(f, "min-replicas") {
			t.Errorf("the doctor finds: %s", f)
		}
	}
	neverRefused(t, append([]*redistest.Server{group.Master, group.Replica}, group.Sentinels...)...)
}
