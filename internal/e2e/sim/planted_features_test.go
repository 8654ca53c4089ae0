package sim

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// featureBugs are bugs in the features above the locks. All tests of Pawl once missed the
// first six.
var featureBugs = []bug{
	{"a task that is done is not noted if its ctx has ended", "nothing had gone wrong, but its answer", 4, "memory", inClient(func(p *process, b *patched) {
		b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
			if leases[0].Name == onceName && leases[0].Value != nil && p.w.history.ctxOver(p) {
				return nil, context.Canceled
			}
			return b.server.Renew(ctx, leases)
		}
	}), atLeastOnce},
	{"the error of a function that has resigned is not returned", "returned an error of its own", 18, "memory", inElection(func(ctx context.Context, run runFunc, f userFunc) error {
		if err := run(ctx, f); !errors.Is(err, errOwn) {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}), nil},
	{"the leader has the value of the previous term", "its value belongs to another term", 5, "memory", entries(func(_ *process, e *driver.Entry) {
		for _, h := range e.Holders {
			e.ValueFence = h.Fence
		}
	}), nil},
	{"the name is closed for half of the lock-delay of its lease", "to stop, and", 1, "memory", claims(func(c *driver.Claim) { c.LockDelay /= 2 }), losesWithDelay},
	{"a lease with a health function is passed on as one without", "they differ in their health", 12, "memory", func() planted { return planted{noHealth: true} }, healthy},
	{"a watcher that does not wait for the expiry of a lease", "ended by itself", 26, "memory", entries(func(_ *process, e *driver.Entry) {
		for i := range e.Holders {
			e.Holders[i].ExpiresIn = time.Hour
		}
	}), watched},
	{"a health function that is not called", "was unhealthy from", 21, "memory", func() planted { return planted{noHealth: true} }, nil},
	{"a key is written with the release, not with the grant", "had run key", 5, "memory", claims(func(c *driver.Claim) { c.Value = nil }), nil},
	{"keys that are not compared", "had run key", 5, "memory", claims(func(c *driver.Claim) { c.ValueBelow = nil }), nil},
	{"a claim is refused for a key that is not done", "no task has done it", 5, "memory", inNode(func(b *patched, m *bugState) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if c.ValueBelow != nil && string(c.ValueBelow) > "b" {
				return driver.Grant{}, &driver.ValueNotBelowError{Name: c.Name, Value: c.ValueBelow}
			}
			return b.server.Acquire(ctx, c)
		}
	}), nil},
	{"a value that is set while an instance waits is lost", "had set its value before its term", 77, "memory", inNode(func(b *patched, _ *bugState) {
		b.renewals(func(l *driver.LeaseRef) { l.Value = nil })
	}), nil},
	{"an election that ends when the backend fails", "and its function had not", 4, "memory", inElection(func(ctx context.Context, run runFunc, f userFunc) error {
		began := time.Now()
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err := run(ctx, f)
		if time.Since(began) >= 2*time.Second {
			return driver.ErrUnavailable
		}
		return err
	}), nil},
	{"an instance that leads although its term is over", "hold the name at the same time", 94, "memory", inElection(func(ctx context.Context, run runFunc, f userFunc) error {
		return run(ctx, func(inner context.Context) error { return f(context.WithoutCancel(inner)) })
	}), nil},
	{"a lease that is attached with another fence", "and detached with", 4, "memory", func() planted {
		return planted{handle: func(h map[string]any) { h["f"] = json.Number(h["f"].(json.Number).String() + "0") }}
	}, nil},
	{"a renewal that grants an attached lease again", "was granted before that", 89, "memory", inNode(func(b *patched, m *bugState) {
		plantGrantingRenewal(b, m, func(driver.Token) bool { return true })
	}), nil},
	{"a lease that is renewed after it was detached", "was detached, but", 39, "memory", inClient(func(p *process, b *patched) {
		last := map[driver.Token]driver.LeaseRef{}
		b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
			for _, l := range leases {
				if _, known := last[l.Token]; !known {
					time.AfterFunc(2*l.TTL/3, func() { _, _ = b.server.Renew(context.Background(), []driver.LeaseRef{l}) })
				}
				last[l.Token] = l
			}
			return b.server.Renew(ctx, leases)
		}
	}), nil},
	{"a renewal that succeeds for a lease that has ended", "was confirmed at", 89, "memory", inNode(func(b *patched, _ *bugState) {
		b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
			answers, err := b.server.Renew(ctx, leases)
			return make([]error, len(answers)), err
		}
	}), nil},
	{"a term that counts from the answer to Confirm", "is trusted until", 5, "memory", func() planted { return planted{countsFromAnswer: true} }, nil},
	{"a minimum hold that is longer than it should be", "its minimum hold is over", 6, "memory", inNode(func(b *patched, _ *bugState) {
		b.releases(func(l *driver.LeaseRef) { l.MinHold += l.MinHold / 10 })
	}), nil},
	{"a break that closes the name for half of its delay", "had broken a lease", 92, "memory", inNode(func(b *patched, _ *bugState) {
		b.breaks = func(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
			return b.server.Break(ctx, name, fence, delay/2, by)
		}
	}), nil},
	{"readers who wait enter one by one", "lets process", 7, "memory", claims(func(c *driver.Claim) {
		if c.Weight == 1 && c.Limit == driver.Unlimited && c.Queue {
			c.Limit = 1
		}
	}), nil},
	{"a forced claim leaves the name closed", "has granted a forced claim", 2, "memory", inNode(func(b *patched, _ *bugState) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := b.server.Acquire(ctx, c)
			if err == nil && c.Force {
				_ = b.server.Break(ctx, c.Name, g.Fence, time.Second, c.Owner)
			}
			return g, err
		}
	}), nil},
	{"the head of the queue gets no signal when the name opens", "while the name was free", 13, "memory", signals(func(k driver.SignalKind) bool { return k != driver.SignalRetry }), opening},
	{"a lock-delay that is half as long after a detached lease", "was detached and left alone", 1, "memory", claims(func(c *driver.Claim) { c.LockDelay /= 2 }), leftAlone},
	{"a watcher that does not look when a closed name opens", "that the name is closed for", 221, "memory", entries(func(_ *process, e *driver.Entry) {
		if e.ClosedFor > 0 {
			e.ClosedFor = max(time.Millisecond, e.ClosedFor-time.Minute)
		}
	}), nil},
	{"All holds names while it waits", "after 0 polite rounds", 186, "memory", func() planted { return planted{holdsWhileWaiting: true} }, nil},
	{"All takes only its first name", "has no lease of it", 4, "memory", func() planted { return planted{onlyFirstName: true} }, nil},
	{"a watcher that misses the last change", "has not seen the last state", 10, "memory", entries(func(p *process, e *driver.Entry) {
		if p.w.now() > p.w.faultFreeFrom() {
			e.Holders = append(e.Holders, driver.Holder{Fence: 1})
		}
	}), nil},
}

// ctxOver reports whether the ctx of a running Once of the process has ended.
func (h *history) ctxOver(p *process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.calls, func(c *call) bool {
		return c.process == p && c.verb == "once" && c.granted && c.answered == never && c.ctxEnds != never && c.ctxEnds <= h.w.now()
	})
}

// inElection plants a bug in Election.Run.
func inElection(bug func(ctx context.Context, run runFunc, f userFunc) error) func() planted {
	return func() planted {
		return planted{run: func(run runFunc) runFunc {
			return func(ctx context.Context, f userFunc) error { return bug(ctx, run, f) }
		}}
	}
}

// Each of these functions makes a situation that its bug needs more frequent.

func atLeastOnce(p *plan) {
	p.eachStep(func(s *step) {
		if s.verb == "once" {
			s.atLeastOnce, s.outcome, s.hold, s.cancel = true, "", p.baseTTL/10, p.baseTTL/20
		}
	})
	p.makeCalm()
}

func losesWithDelay(p *plan) {
	p.eachStep(func(s *step) {
		if s.verb == "lock" {
			s.delay, s.maxHold, s.usesTimeAfterLoss, s.usesDo = p.baseTTL, p.baseTTL/2, true, false
			s.hold, s.timeout, s.cancel = 2*p.baseTTL, never, never
			s.detaches = false
		}
	})
	p.makeCalm()
}

func healthy(p *plan) {
	p.eachStep(func(s *step) {
		if s.verb == "lock" && s.kind == "mutex" {
			s.health, s.unhealthyAfter, s.detaches, s.hold = !s.usesDo, never, false, time.Millisecond
			s.delay, s.minHold, s.maxHold, s.ttl, s.after = 0, 0, 0, p.baseTTL, 0
		}
	})
	p.makeCalm()
}

func watched(p *plan) {
	p.eachStep(func(s *step) {
		if s.verb == "lock" && !s.usesDo {
			s.detaches, s.detachedFor, s.hold, s.health = true, never, p.baseTTL/10, false
		}
		if s.verb == "watch" {
			s.hold = never
		}
	})
	p.makeCalm()
}

func leftAlone(p *plan) {
	watched(p)
	p.eachStep(func(s *step) {
		if s.verb == "lock" {
			s.delay, s.maxHold, s.timeout, s.cancel = p.baseTTL, 0, never, never
		}
	})
}

// opening: names soon open by themselves, when a minimum hold is over, before the head of
// the queue would ask anyway. No claim gives up.
func opening(p *plan) {
	p.eachStep(func(s *step) {
		if s.verb == "lock" {
			s.minHold, s.maxHold, s.timeout, s.cancel, s.detaches, s.health = p.baseTTL/10, 0, never, never, false, false
			s.hold = min(s.hold, p.baseTTL/50)
		}
	})
	p.makeCalm()
}

func (p *plan) makeCalm() { p.weather, p.faults = calm(), nil }

// patchHandle changes a handle, if a bug is planted in handles.
func (b planted) patchHandle(handle pawl.Handle) pawl.Handle {
	if b.handle == nil {
		return handle
	}
	text, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(string(handle), "pawl1_"))
	in, d := map[string]any{}, json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	_ = d.Decode(&in)
	b.handle(in)
	text, _ = json.Marshal(in)
	text = binary.BigEndian.AppendUint32(text, crc32.ChecksumIEEE(text)) // changed, with a valid checksum
	return pawl.Handle("pawl1_" + base64.RawURLEncoding.EncodeToString(text))
}
