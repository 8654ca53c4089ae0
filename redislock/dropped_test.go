package redislock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The server drops an idle connection: the next step uses a new one, and succeeds.
func TestTheStepAfterADroppedConnectionSucceeds(t *testing.T) {
	t.Parallel()
	for cause, drop := range map[string]func(*redistest.Server){
		"killed":    func(s *redistest.Server) { s.Do("CLIENT", "KILL", "TYPE", "normal") },
		"restarted": func(s *redistest.Server) { s.Kill(); s.Run() },
		"idle too long": func(s *redistest.Server) {
			s.Do("CONFIG", "SET", "timeout", "1")
			time.Sleep(3 * time.Second)
			s.Do("CONFIG", "SET", "timeout", "0")
		},
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			d := openDriver(t, "redis://"+server.Addr+"?tracking=false")
			for round := range 3 {
				for what, step := range map[string]func(context.Context, driver.Claim) error{
					"try": func(ctx context.Context, c driver.Claim) error { _, err := d.Acquire(ctx, c); return err },
					"force": func(ctx context.Context, c driver.Claim) error {
						c.Force = true
						_, err := d.Acquire(ctx, c)
						return err
					},
					"read":    func(ctx context.Context, c driver.Claim) error { _, err := d.Inspect(ctx, c.Name); return err },
					"release": func(ctx context.Context, c driver.Claim) error { return d.Release(ctx, lease(c)) },
				} {
					c := mutex(fmt.Sprint(what, round))
					if what == "release" {
						gets(t, d, c)
					}
					drop(server)
					ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
					err := step(ctx, c)
					cancel()
					if isLost := cause == "restarted" && what == "release"; err != nil && !isLost {
						t.Errorf("%s: %v", what, err)
					}
				}
				if cause != "killed" {
					return
				}
			}
		})
	}
}

// If the driver sends an attempt twice, the server may get the first request late, after
// the release.
func TestAnAttemptThatWasSentTwiceIsReleasedTwice(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	server := redistest.Start(t)
	proxy := servertest.StartProxy(t, server.Addr)
	d := openDriver(t, "redis://"+proxy.Addr+"?tracking=false")
	direct := openDriver(t, "redis://"+server.Addr)
	gets(t, d, mutex("first"))
	gets(t, direct, mutex("second"))
	c := mutex("job")
	lost := proxy.LoseReply(string(c.Token[:]))
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	must(d.Acquire(ctx, c))(t)
	<-lost
	releases(t, d, c)
	gets(t, direct, c) // as if the attempt arrived only now
	becomes(t, "the name is free", func() bool {
		e, err := direct.Inspect(t.Context(), "job")
		return err == nil && len(e.Holders) == 0
	})
}

func TestALostAnswerLosesNoLease(t *testing.T) {
	t.Parallel()
	redistest.CheckLostReplies(t, redisscript.Renew.SHA, redisscript.Release.SHA, func(addr string) driver.Driver {
		return openDriver(t, "redis://"+addr+"?tracking=false") // so that each request with the key is a step
	})
}
