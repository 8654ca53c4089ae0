package redisscript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
)

// clockServer is a server, or a cluster, whose clocks are ahead of the clock of the test.
// It refuses requests that arrive too late.
type clockServer struct {
	Conn      // nil: no other methods
	cluster   bool
	mu        sync.Mutex // protects ahead
	ahead     []time.Duration
	latency   time.Duration // the latency of a request, and of an answer
	slowSince time.Time     // from then on the clocks lose a thousandth of the time; zero: never
	hung      bool
	scripts   int
}

func (c *clockServer) now(i int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.slowSince.IsZero() {
		now = now.Add(-now.Sub(c.slowSince) / 1000)
	}
	return now.Add(c.ahead[i]).UnixMicro()
}

// A clockNode is one of the servers.
type clockNode struct {
	*clockServer
	i int
}

func (c clockNode) Do(ctx context.Context, _ Command) Reply {
	if c.hung {
		<-ctx.Done()
		return Reply{Err: ctx.Err()}
	}
	time.Sleep(c.latency)
	now := c.now(c.i)
	time.Sleep(c.latency)
	return Reply{Text: fmt.Sprintf("%d\n%d\n", now/1e6, now%1e6)}
}

// client returns a client whose requests end with their ctx.
func (c *clockServer) client(conn Conn) *Client {
	return &Client{Conn: conn, Cluster: c.cluster, Location: "there", IdleConns: func() int { return 0 }, Nodes: func(context.Context, bool) (all []Node, _ error) {
		for i := range c.ahead {
			all = append(all, Node{Name: fmt.Sprint(i), Conn: clockNode{c, i}})
		}
		return all, nil
	}}
}

// step returns a step of the i-th server that has an end.
func (c *clockServer) step(i int) func(end int64) Reply {
	return func(end int64) Reply {
		c.scripts++
		time.Sleep(c.latency)
		defer time.Sleep(c.latency)
		if now := c.now(i); now > end {
			return Reply{Int: -now}
		}
		return Reply{Int: 1}
	}
}

// withDriver runs f with a driver that knows no clock yet.
func withDriver(t *testing.T, c *clockServer, f func(ctx context.Context, d *Driver)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		var loops engine.Background
		d := &Driver{client: c.client(c)}
		d.clock = newClock(newBounded(d.client, life), &loops)
		f(t.Context(), d)
		end()
		loops.Close()
	})
}

// runWithin runs a step with a timeout, and returns how often the step was sent.
func runWithin(ctx context.Context, d *Driver, c *clockServer, i int, timeout time.Duration) (Reply, int) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	before := c.scripts
	p := d.runWithEnd(ctx, time.Now(), "job", nil, c.step(i))
	return p, c.scripts - before
}

func TestAStepIsSentOnceWhenTheTimeIsKnown(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		c := &clockServer{ahead: []time.Duration{ahead}, latency: time.Millisecond}
		withDriver(t, c, func(ctx context.Context, d *Driver) {
			<-d.clock.askIfUnknown()
			for range 5 {
				if p, n := runWithin(ctx, d, c, 0, 100*time.Millisecond); p.Int != 1 || n != 1 {
					t.Errorf("ahead by %v: %+v, sent %d times", ahead, p, n)
				}
				time.Sleep(10 * time.Minute) // the driver asks for the time once a minute
			}
		})
	}
}

func TestARefusalShowsTheServersTime(t *testing.T) {
	c := &clockServer{ahead: []time.Duration{time.Hour}, latency: time.Millisecond, hung: true}
	withDriver(t, c, func(ctx context.Context, d *Driver) {
		began := time.Now()
		<-d.clock.askIfUnknown()
		if took := time.Since(began); took > subscribeTimeout {
			t.Errorf("the driver waited %v for the server's time", took)
		}
		for want := 2; want > 0; want-- {
			if p, n := runWithin(ctx, d, c, 0, time.Second); p.Int != 1 || n != want {
				t.Errorf("%+v, sent %d times, want %d", p, n, want)
			}
		}
	})
}

// If the server refuses a step at the end of its ctx, the driver does not send it again.
// No step takes effect after the end.
func TestNothingTakesEffectAfterTheEndOfItsCtx(t *testing.T) {
	for _, latency := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 200 * time.Millisecond} {
		for _, timeout := range []time.Duration{time.Millisecond, 29 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
			c := &clockServer{ahead: []time.Duration{-time.Minute}, latency: latency}
			withDriver(t, c, func(ctx context.Context, d *Driver) {
				c.slowSince = time.Now()
				<-d.clock.askIfUnknown()
				time.Sleep(time.Minute / 2)
				began := time.Now()
				p, _ := runWithin(ctx, d, c, 0, timeout)
				if took := time.Since(began) - latency; p.Int == 1 && took > timeout {
					t.Errorf("latency %v: done after %v, timeout %v", latency, took, timeout)
				}
				if p.Int != 1 && (!errors.Is(p.Err, context.DeadlineExceeded) || timeout > 3*latency+time.Second/2) {
					t.Errorf("latency %v, timeout %v: %+v", latency, timeout, p)
				}
			})
		}
	}
}

func TestAClockThatWasSetBackIsLearned(t *testing.T) {
	c := &clockServer{ahead: []time.Duration{time.Hour}, latency: time.Millisecond}
	withDriver(t, c, func(ctx context.Context, d *Driver) {
		<-d.clock.askIfUnknown()
		c.mu.Lock()
		c.ahead[0] = 0
		c.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if end, now := d.clock.toServerTime(time.Now(), "job"), time.Now().UnixMicro(); end > now {
			t.Errorf("the server's clock is believed to be %d µs ahead", end-now)
		}
	})
}

func TestALostConnectionMakesTheTimeUnknown(t *testing.T) {
	c := &clockServer{ahead: []time.Duration{time.Hour}, latency: time.Millisecond}
	withDriver(t, c, func(ctx context.Context, d *Driver) {
		<-d.clock.askIfUnknown()
		d.runWithEnd(ctx, time.Now(), "job", nil, func(int64) Reply { return Reply{Err: io.EOF} })
		if end := d.clock.toServerTime(time.Now(), "job"); end != 0 {
			t.Errorf("the end is %d; want 0, because the time is unknown", end)
		}
		<-d.clock.askIfUnknown()
		if p, n := runWithin(ctx, d, c, 0, time.Second); p.Int != 1 || n != 1 {
			t.Errorf("%+v, sent %d times", p, n)
		}
	})
}

func TestInAClusterTheMasterThatIsFurthestBehindCounts(t *testing.T) {
	c := &clockServer{cluster: true, ahead: []time.Duration{0, 10 * time.Millisecond, time.Hour}, latency: time.Millisecond}
	withDriver(t, c, func(ctx context.Context, d *Driver) {
		<-d.clock.askIfUnknown()
		for i, want := range []int{1, 1, 2} {
			if p, n := runWithin(ctx, d, c, i, 100*time.Millisecond); p.Int != 1 || n != want {
				t.Errorf("node %d: %+v, sent %d times, want %d", i, p, n, want)
			}
		}
		if p, n := runWithin(ctx, d, c, 2, 100*time.Millisecond); p.Int != 1 || n != 1 {
			t.Errorf("the node that is ahead: %+v, sent %d times, want once", p, n)
		}
		time.Sleep(time.Minute)
		if end, now := d.clock.toServerTime(time.Now(), "job"), time.Now().UnixMicro(); end > now {
			t.Error("the clock is believed after a minute, though the name may have moved")
		}
	})
}

func TestAClockThatJumpsWithEachAnswerCausesAnError(t *testing.T) {
	c := &clockServer{ahead: []time.Duration{0}}
	withDriver(t, c, func(ctx context.Context, d *Driver) {
		p := d.runWithEnd(ctx, time.Now(), "job", nil, func(end int64) Reply { return Reply{Int: -end - 1 - time.Hour.Microseconds()*24*30} })
		if !errors.Is(p.Err, errNoTime) {
			t.Errorf("%+v", p)
		}
	})
}

func TestTimeIsReadFromItsTwoLines(t *testing.T) {
	for text, want := range map[string]int64{"12\n000034\n": 12000034, "12\n34": 12000034, "": 0, "x\n1": 0, "12": 0, "1\nx": 0} {
		if got := readTime(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// stepServer is a clockServer that can run steps.
type stepServer struct{ clockServer }

func (w *stepServer) Subscribe(ctx context.Context, _ Channel, subscribed func(), _ func(string)) error {
	time.Sleep(2 * w.latency)
	subscribed()
	<-ctx.Done()
	return ctx.Err()
}

func (w *stepServer) Do(_ context.Context, c Command) Reply {
	end := reader{rest: c.Args[0][1+3*8:]}
	return w.step(0)(int64(end.instant()))
}

// The driver asks for the time while it waits for the subscription, so a command with one
// step does not wait longer.
func TestTheFirstClaimDoesNotWaitForTheTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const latency = 100 * time.Millisecond
		w := &stepServer{clockServer{ahead: []time.Duration{time.Hour}, latency: latency}}
		d := New(w.client(w), Options{Prefix: "pawl:", Retention: time.Hour})
		for _, want := range []time.Duration{4 * latency, 2 * latency} { // subscription, claim; claim
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			_, err := d.Acquire(ctx, driver.Claim{
				Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute,
			})
			if took := time.Since(began); err != nil || took != want {
				t.Errorf("%v after %v, want %v", err, took, want)
			}
			cancel()
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// In a cluster, the driver learns the time of a slot from a refusal. After a new
// connection, a server whose clock is behind may serve the slot.
func TestANewConnectionMakesTheTimesOfSlotsUnknown(t *testing.T) {
	c := &clockServer{cluster: true, ahead: []time.Duration{time.Hour, 0}, latency: time.Millisecond}
	withDriver(t, c, func(ctx context.Context, d *Driver) {
		for i, want := range []int{2, 2} {
			d.Reconnected()
			if p, n := runWithin(ctx, d, c, i, time.Second); p.Int != 1 || n != want {
				t.Errorf("server %d: %+v, sent %d times, want %d", i, p, n, want)
			}
		}
	})
}
