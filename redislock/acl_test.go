package redislock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// What a user needs, as docs/backends.md says. What comes after the first line can be left out, and then that ability
// is missing: push, tracking, listing, the doctor.
const (
	rights = "~pawl:* -@all +hello +ping +eval +evalsha +cluster|slots +time +get +set +getex +unlink +pexpire " +
		"+hget +hset +hdel +zadd +zrem +zcard +zrange +zrangebyscore +zrank +zscore"
	rightsToPush   = "&pawl:* +subscribe +unsubscribe +publish"
	rightsToTrack  = "+client|tracking +client|caching +exists"
	rightsToList   = "+scan"
	rightsToDoctor = "+info +config|get"
)

func user(t *testing.T, server *redistest.Server, rules string) string {
	t.Helper()
	server.Do(append([]string{"ACL", "SETUSER", "joe", "reset", "on", ">sesame"}, strings.Fields(rules)...)...)
	return "redis://joe:sesame@" + server.Addr
}

func TestAUserWithTheDocumentedRightsCanDoEverything(t *testing.T) {
	server := redistest.Start(t)
	d := start(t, user(t, server, strings.Join([]string{rights, rightsToPush, rightsToTrack, rightsToList, rightsToDoctor}, " ")))
	heard := listen(t, d)
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		c, waiter := kind("job"), queued("job")
		gets(t, d, c)
		renews(t, d, c)
		raises(t, d, c)
		_, _ = d.Acquire(ctx, waiter)
		for e, err := range d.List(ctx, "") {
			if err != nil || e.Name != "job" || len(e.Waiters) != 1 {
				t.Errorf("%+v, %v", e, err)
			}
		}
		releases(t, d, c)
		hear(t, heard, driver.Granted, waiter.Token)
		g := gets(t, d, waiter)
		armed(t, server)
		if err := d.Break(ctx, "job", g.Fence, 0, driver.Owner{}); err != nil {
			t.Error(err)
		}
		hear(t, heard, driver.Lost, waiter.Token)
		if _, err := d.Diagnose(ctx); err != nil {
			t.Error(err)
		}
	}
	if !d.Properties().Push {
		t.Error("Push is false")
	}
	if log := server.Do("ACL", "LOG"); log != "*0\r\n" {
		t.Errorf("refused: %s", log)
	}
}

func TestAUserWithoutChannelsCanLockAndPropertiesSaySo(t *testing.T) {
	server := redistest.Start(t)
	d := start(t, user(t, server, rights))
	c, waiter := mutex("job"), queued("job")
	gets(t, d, c)
	if d.Properties().Push {
		t.Error("Push is true")
	}
	_, _ = d.Acquire(ctx, waiter)
	releases(t, d, c)
	gets(t, d, waiter)
	releases(t, d, waiter)
}

func TestAMissingRightIsAnErrorThatSaysSo(t *testing.T) {
	server := redistest.Start(t)
	for _, rules := range []string{
		"~other:* " + strings.TrimPrefix(rights, "~pawl:* "),
		strings.Replace(rights, "+evalsha", "", 1),
		strings.Replace(rights, "+set ", "", 1),
	} {
		d := start(t, user(t, server, rules))
		_, err := d.Acquire(ctx, mutex("job"))
		unavailable(t, err, true, "ACL")
		for _, err := range d.List(ctx, "") {
			if !errors.Is(err, driver.ErrUnavailable) {
				t.Error(err)
			}
		}
	}
}
