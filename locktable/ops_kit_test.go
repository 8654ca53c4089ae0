package locktable_test

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// An op is one operation on a name. Properties draw ops with rapid, fuzzers read them
// from bytes, and both the model and the entry run them.
type op struct {
	kind     string // "acquire", "renew", "release", "break", "sleep", "forget"
	claim    driver.Claim
	duration time.Duration // the TTL, minimum hold or delay; or the time to sleep
	fence    uint64
}

func (o op) String() string {
	switch c := o.claim; o.kind {
	case "acquire":
		return fmt.Sprintf("acquire %s %d of %d, TTL %v, queue %v for %v, force %v, delay %v, fences %d from %d, ticket %d, value %q above %q",
			tokenName(c.Token), c.Weight, c.Limit, c.TTL, c.Queue, c.QueueTTL, c.Force, c.LockDelay, c.Fences, c.MinFence, c.Ticket, c.Value, c.ValueBelow)
	case "break":
		return fmt.Sprintf("break %d, delay %v", o.fence, o.duration)
	case "sleep", "forget":
		return fmt.Sprintf("%s %v", o.kind, o.duration)
	default:
		return fmt.Sprintf("%s %s %v, value %q", o.kind, tokenName(c.Token), o.duration, c.Value)
	}
}

// A chooser returns a number from 0 to n-1. All randomness comes from choosers.
type chooser func(what string, n int) int

func pick[T any](choose chooser, what string, of ...T) T { return of[choose(what, len(of))] }

// There are few clients and few durations, so that events often come at the same instant,
// or nearly.
var (
	clients     = []string{"a", "b", "c", "d", "e"}
	durations   = []time.Duration{10 * ms, 10*ms + 1, 15 * ms, 20 * ms, 50 * ms, sec}
	delays      = []time.Duration{0, 0, 0, 1, 5 * ms, 10 * ms, 30 * ms, sec}
	fenceCounts = []int{0, 1, 2, 1000, driver.MaxFences}
	values      = [][]byte{nil, nil, nil, {}, []byte("a"), []byte("ab"), []byte("b"), {0}, {0xff}}
	actions     = []string{"sleep", "acquire", "acquire", "acquire", "acquire", "renew", "release", "release", "break", "sleep", "sleep", "forget"}
)

// drawOp draws an op that fits the state: the fence to break is often a holder's fence,
// and a sleep often ends at the instant of an event.
func (fx *fixture) drawOp(choose chooser, backwards bool) op {
	o := op{kind: pick(choose, "what", actions...)}
	switch o.kind {
	case "acquire":
		o.claim = drawClaim(choose)
		fx.reuseWeightAndLimit(&o.claim)
		switch n := choose("ticket", 8); {
		case n >= 4: // recent, too old, or in the future
			arrived := fx.now + locktable.Instant(pick(choose, "came", -ms, -100*ms, -driver.MaxLead, -sec, 0, sec)/µs)
			o.claim.Ticket = uint64(max(arrived, 1))
		case n > 0: // soon, or further ahead than MaxLead, or past
			o.claim.MinFence = uint64(max(fx.now.Add([]time.Duration{ms, 2 * driver.MaxLead, -sec}[n-1]), 1))
		}
	case "renew":
		o.claim.Token, o.duration = tokenOf(pick(choose, "who", clients...)), pick(choose, "for", durations...)
		o.claim.Value = pick(choose, "value", values...)
	case "release":
		o.claim.Token, o.duration = tokenOf(pick(choose, "who", clients...)), pick(choose, "minimum hold", delays...)
		o.claim.Value = pick(choose, "value", values...)
	case "break":
		o.duration, o.fence = pick(choose, "delay", delays...), fx.entry.Fence
		if n := len(fx.entry.Holders); n > 0 {
			h := fx.entry.Holders[choose("holder", n)]
			o.fence = h.Fence + uint64(choose("which fence", h.Fences+2)) - 1
		}
	case "sleep":
		o.duration = fx.sleepTime(choose, backwards)
	}
	return o
}

// reuseWeightAndLimit gives a claim the weight and limit of its token's lease or place,
// because a token is for one claim.
func (fx *fixture) reuseWeightAndLimit(c *driver.Claim) {
	for _, h := range fx.entry.Holders {
		if h.Token == c.Token {
			c.Weight, c.Limit = h.Weight, h.Limit
		}
	}
	for _, w := range fx.entry.Queue {
		if w.Token == c.Token {
			c.Weight, c.Limit = w.Weight, w.Limit
		}
	}
}

func drawClaim(choose chooser) driver.Claim {
	kind := pick(choose, "kind", [2]int{driver.Exclusive, driver.Unlimited}, [2]int{1, driver.Unlimited}, [2]int{1, 1}, [2]int{1, 2},
		[2]int{2, 2}, [2]int{1, 3}, [2]int{2, 3}, [2]int{3, 5})
	c := driver.Claim{
		Name: "job", Token: tokenOf(pick(choose, "who", clients...)), Weight: kind[0], Limit: kind[1],
		TTL: pick(choose, "TTL", durations...), Queue: choose("queue", 4) > 0, Force: choose("force", 16) == 15,
		LockDelay: pick(choose, "lock-delay", delays...), Fences: pick(choose, "fences", fenceCounts...),
	}
	c.Value, c.ValueBelow = pick(choose, "value", values...), pick(choose, "above", values...)
	if c.Owner = ownerOf(c.Token); c.Queue {
		c.QueueTTL = pick(choose, "queue TTL", durations...)
	}
	return c
}

// ownerOf returns the owner of the claims with a token. Each of its fields has a value of
// its own.
func ownerOf(t driver.Token) driver.Owner {
	who := tokenName(t)
	return driver.Owner{Client: who, Host: "host of " + who, PID: int(t[0]), Labels: map[string]string{"who": who}}
}

// sleepTime returns the time to sleep: any time, or until an event, or until just before
// one.
func (fx *fixture) sleepTime(choose chooser, backwards bool) time.Duration {
	var at []locktable.Instant
	for _, h := range fx.entry.Holders {
		at = append(at, h.Expires, h.Expires.Add(h.LockDelay))
	}
	for _, w := range fx.entry.Queue {
		at = append(at, w.Expires)
	}
	for _, b := range fx.entry.Broken {
		at = append(at, b.Until)
	}
	at = append(at, fx.entry.Closed, locktable.Instant(fx.entry.Fence)+1)
	switch n := choose("nap", 6); {
	case n == 5 && backwards:
		return -pick(choose, "back", µs, 5*ms, sec, time.Hour)
	case n >= 3:
		return pick(choose, "for", µs, 2*ms, 5*ms, 10*ms, 30*ms, sec)
	default:
		until := at[choose("until", len(at))] - locktable.Instant(choose("less", 2))
		return max(0, min(fx.now.Until(until), driver.MaxTTL)) // a fuzzed entry may have an event in the far future
	}
}

// do runs the op on the entry, and returns the answer and the signals as text.
func (fx *fixture) do(o op) string {
	fx.t.Helper()
	var answer string
	switch c := o.claim; o.kind {
	case "acquire":
		answer = answerText(fx.acquire(&c))
	case "renew":
		answer = errText(fx.renewRef(driver.LeaseRef{Token: c.Token, TTL: o.duration, Value: c.Value}))
	case "release":
		answer = errText(fx.releaseRef(driver.LeaseRef{Token: c.Token, MinHold: o.duration, Value: c.Value}))
	case "break":
		answer = errText(fx.breakLease(o.fence, o.duration, "boss"))
	case "sleep":
		fx.sleep(o.duration)
		return ""
	case "forget":
		if fx.entry.Idle(fx.now) {
			fx.entry = &locktable.Entry{}
		}
		return ""
	}
	for _, s := range fx.entry.Signals {
		answer += fmt.Sprintf("; signal %d to %s, fence %d, run %d", s.Kind, s.Inbox, s.Fence, s.Fences)
	}
	return answer
}

func answerText(g driver.Grant, err error) string {
	if v, ok := errors.AsType[*driver.ValueNotBelowError](err); ok {
		return fmt.Sprintf("refused for the value %q of fence %d", v.Value, v.Fence)
	}
	held, _ := errors.AsType[*driver.HeldError](err)
	if held == nil {
		return fmt.Sprintf("granted %d, run %d, for %v", g.Fence, g.Fences, g.TTL)
	}
	s := fmt.Sprintf("refused at place %d, closed for %v, after fence %d", held.Position, held.ClosedFor, held.Fence)
	if h := held.Holder; held.Holders > 0 {
		s += fmt.Sprintf(", held by %d, of them %v (fence %d, %d of %d, %v, released %v)", held.Holders, h.Owner, h.Fence, h.Permits, h.Limit, h.ExpiresIn, h.Released)
	}
	return s
}

func errText(err error) string {
	if b, ok := errors.AsType[*driver.BrokenError](err); ok {
		return fmt.Sprintf("broken by %v, closed for %v", b.By, b.ClosedFor)
	}
	return fmt.Sprint(err)
}

// rapidChooser returns a chooser that draws from rapid.
func rapidChooser(t *rapid.T) chooser {
	return func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }
}

// drawStepCount draws the number of ops in one example.
func drawStepCount(t *rapid.T) int { return rapid.IntRange(1, 80).Draw(t, "steps") }

// byteChooser returns a chooser that reads bytes. After the last byte it returns 0.
func byteChooser(b []byte) (choose chooser, left func() int) {
	return func(_ string, n int) int {
		if len(b) == 0 {
			return 0
		}
		v := int(b[0])
		if b = b[1:]; n > 256 && len(b) > 0 {
			v, b = v<<8|int(b[0]), b[1:]
		}
		return v % n
	}, func() int { return len(b) }
}
