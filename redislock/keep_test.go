package redislock_test

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// expiry returns the time until a key expires: 0 if it never does, -1 if there is no such
// key.
func expiry(t *testing.T, server *redistest.Server, key string) time.Duration {
	t.Helper()
	ms, err := strconv.Atoi(strings.Trim(server.Do("PTTL", key), ":\r\n"))
	noError(t, err)
	switch ms {
	case -1:
		return 0
	case -2:
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}

// Long ranges bring a fence ahead of the clock. If the server forgot the name before the
// clock has passed the fence, the next fence would be the clock's time, which is lower.
func TestANameIsRememberedUntilTheClockHasPassedItsFence(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr+"?retention=1m")
	var last uint64
	ahead := func() time.Duration { return time.Until(time.UnixMicro(int64(last))) }
	for last == 0 || ahead() < time.Minute+20*time.Second { // longer than the retention
		c := mutex("job")
		c.Fences = driver.MaxFences
		g := gets(t, d, c)
		last = g.Fence + uint64(g.Fences) - 1
		releases(t, d, c)
	}
	if kept := expiry(t, server, "pawl:{job}s"); kept < ahead()-time.Second {
		t.Errorf("the name expires in %v, but its fence is %v ahead", kept, ahead())
	}
}

// The retention of a value begins when the last lease ends, because pawl.Once stores its
// value when its function begins, and that function may run for days.
func TestTheRetentionOfAValueBeginsWhenTheLastLeaseEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr+"?retention=1m")
	for what, obtain := range map[string]func(c driver.Claim){
		"granted":               func(c driver.Claim) { gets(t, d, c) },
		"granted beside others": func(c driver.Claim) { c.Weight = 1; gets(t, d, reader(c.Name)); gets(t, d, c) },
		"forced":                func(c driver.Claim) { gets(t, d, mutex(c.Name)); c.Force = true; gets(t, d, c) },
		"the value written by a renewal": func(c driver.Claim) {
			v := lease(c)
			v.Value, c.Value = c.Value, nil
			gets(t, d, c)
			_, _ = d.Renew(ctx, []driver.LeaseRef{v})
		},
		"the value of an earlier lease": func(c driver.Claim) {
			v := mutex(c.Name)
			v.Value, c.Value = c.Value, nil
			gets(t, d, v)
			releases(t, d, v)
			gets(t, d, c)
		},
		"granted by a release": func(c driver.Claim) {
			first := mutex(c.Name)
			gets(t, d, first)
			c.Queue, c.QueueTTL = true, time.Hour
			waits(t, d, c)
			releases(t, d, first)
		},
	} {
		c := mutex(what)
		c.TTL, c.Value = time.Hour, []byte("2026-11-23T03:00")
		obtain(c)
		expiresIn := func(when string, atLeast time.Duration) {
			t.Helper()
			if kept := expiry(t, server, "pawl:{"+what+"}s"); kept < atLeast-time.Minute/2 {
				t.Errorf("%s, %s: the value expires in %v, want %v", what, when, kept, atLeast)
			}
		}
		expiresIn("at first", time.Hour+time.Minute)
		c.TTL = 2 * time.Hour
		renews(t, d, c)
		expiresIn("renewed", 2*time.Hour+time.Minute)
		l := lease(c)
		l.MinHold = 4 * time.Hour
		noError(t, d.Release(ctx, l))
		expiresIn("released, and kept for its minimum hold", 4*time.Hour+time.Minute)
	}
}

// An eighth of the retention may not be a whole number of microseconds, and the scripts
// refuse fractions.
func TestAnyRetentionIsStoredAsAWholeNumber(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr+"?retention=90.000004s")
	for what, ttl := range map[string]time.Duration{"by the TTL": 168*time.Hour + 3*time.Microsecond, "by the retention": 30 * time.Second} {
		c, waiter := mutex(what), queued(what)
		c.TTL = ttl
		gets(t, d, c)
		waits(t, d, waiter)
		renews(t, d, c)
		releases(t, d, c)
		gets(t, d, waiter)
		releases(t, d, waiter)
		gets(t, d, reader(what))
	}
}

// An older version of Pawl stored fractions of microseconds.
func TestAStoredFractionIsAccepted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	gets(t, d, mutex("job"))
	state := []byte(versionOf(t, server, "pawl:{job}s") + "\x00")
	for _, v := range []float64{1e15, 0, float64(time.Now().Add(time.Hour).UnixMicro()) + 0.5} {
		state = binary.BigEndian.AppendUint64(state, math.Float64bits(v))
	}
	server.Do("SET", "pawl:{job}s", string(state))
	if e, err := d.Inspect(ctx, "job"); err != nil || e.Fence != 1e15 {
		t.Errorf("%+v, %v", e, err)
	}
	gets(t, d, reader("job"))
}

func TestARenewalRestoresTheExpiryOfTheKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	for what, claims := range map[string][]driver.Claim{
		"mutex":   {mutex("mutex")},
		"shared":  {reader("shared"), reader("shared")},
		"waiting": {mutex("waiting"), queued("waiting")},
	} {
		for i := range claims {
			claims[i].TTL, claims[i].QueueTTL = time.Hour, time.Hour
			_, _ = d.Acquire(ctx, claims[i])
		}
		keys := []string{"pawl:{" + what + "}s"}
		if what != "mutex" {
			for _, kind := range "dle" {
				keys = append(keys, "pawl:{"+what+"}"+string(kind))
			}
		}
		for _, command := range [][]string{{"PEXPIRE", "", "5000"}, {"PERSIST", ""}} {
			for _, command[1] = range keys {
				server.Do(command...)
			}
			renews(t, d, claims[0])
			for _, key := range keys {
				if kept := expiry(t, server, key); kept < time.Hour {
					t.Errorf("%s: %s expires in %v after %s and a renewal", what, key, kept, command[0])
				}
			}
		}
	}
}

// If a key was deleted, the next claim creates it again. That key must expire, too.
func TestEachKeyHasAnExpiry(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	for _, kind := range "dle" {
		name := "job " + string(kind)
		gets(t, d, mutex(name))
		_, _ = d.Acquire(ctx, queued(name))
		server.Do("DEL", "pawl:{"+name+"}"+string(kind))
		for range 2 {
			_, _ = d.Acquire(ctx, queued(name))
		}
		for _, kind := range "sdle" {
			if key := "pawl:{" + name + "}" + string(kind); expiry(t, server, key) == 0 {
				t.Errorf("%s: %s has no expiry", name, key)
			}
		}
	}
}
