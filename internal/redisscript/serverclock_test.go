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

// clocked is a server, or a cluster, whose clocks are ahead of ours, and which refuses
// requests that come too late.
type clocked struct {
	Conn    // has no other methods
	cluster bool
	mu      sync.Mutex // protects ahead
	ahead   []time.Duration
	way     time.Duration // how long a request takes to arrive, and so does its answer
	slow    time.Time     // since then its clocks have lost a thousandth, unless it is zero
	hung    bool
	scripts int
}

func (c *clocked) now(i int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.slow.IsZero() {
		now = now.Add(-now.Sub(c.slow) / 1000)
	}
	return now.Add(c.ahead[i]).UnixMicro()
}

// A clockedNode is one of the servers.
type clockedNode struct {
	*clocked
	i int
}

func (c clockedNode) Do(ctx context.Context, _ Command) Reply {
	if c.hung {
		<-ctx.Done()
		return Reply{Err: ctx.Err()}
	}
	time.Sleep(c.way)
	now := c.now(c.i)
	time.Sleep(c.way)
	return Reply{Text: fmt.Sprintf("%d\n%d\n", now/1e6, now%1e6)}
}

// client is one whose requests end with their ctx.
func (c *clocked) client(conn Conn) *Client {
	return &Client{Conn: conn, Cluster: c.cluster, Location: "there", Idle: func() int { return 0 }, Nodes: func(context.Context, bool) (all []Node, _ error) {
		for i := range c.ahead {
			all = append(all, Node{Name: fmt.Sprint(i), Conn: clockedNode{c, i}})
		}
		return all, nil
	}}
}

// step is one that has an end, on the i-th server.
func (c *clocked) step(i int) func(end int64) Reply {
	return func(end int64) Reply {
		c.scripts++
		time.Sleep(c.way)
		defer time.Sleep(c.way)
		if now := c.now(i); now > end {
			return Reply{Int: -now}
		}
		return Reply{Int: 1}
	}
}

// timed runs f with a driver that knows no clock yet.
func timed(t *testing.T, c *clocked, f func(ctx context.Context, d *Driver)) {
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

// within runs a step with a ctx that lasts so long, and returns how often it was sent.
func within(ctx context.Context, d *Driver, c *clocked, i int, patience time.Duration) (Reply, int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := c.scripts
	p := d.runWithEnd(ctx, time.Now(), "job", nil, c.step(i))
	return p, c.scripts - before
}

func TestAStepIsSentOnceWhenTheTimeIsKnown(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		c := &clocked{ahead: []time.Duration{ahead}, way: time.Millisecond}
		timed(t, c, func(ctx context.Context, d *Driver) {
			<-d.clock.begin()
			for range 5 {
				if p, n := within(ctx, d, c, 0, 100*time.Millisecond); p.Int != 1 || n != 1 {
					t.Errorf("ahead by %v: %+v, sent %d times", ahead, p, n)
				}
				time.Sleep(10 * time.Minute) // the driver asks for the time once a minute
			}
		})
	}
}

func TestARefusalShowsTheServersTime(t *testing.T) {
	c := &clocked{ahead: []time.Duration{time.Hour}, way: time.Millisecond, hung: true}
	timed(t, c, func(ctx context.Context, d *Driver) {
		began := time.Now()
		<-d.clock.begin()
		if took := time.Since(began); took > subscribeTimeout {
			t.Errorf("it was waited for its time for %v", took)
		}
		for want := 2; want > 0; want-- {
			if p, n := within(ctx, d, c, 0, time.Second); p.Int != 1 || n != want {
				t.Errorf("%+v, sent %d times, want %d", p, n, want)
			}
		}
	})
}

// A step that is refused at the end of its ctx is not sent again, whatever held it up,
// and no step takes effect after the end.
func TestNothingTakesEffectAfterTheEndOfItsCtx(t *testing.T) {
	for _, way := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 200 * time.Millisecond} {
		for _, patience := range []time.Duration{time.Millisecond, 29 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
			c := &clocked{ahead: []time.Duration{-time.Minute}, way: way}
			timed(t, c, func(ctx context.Context, d *Driver) {
				c.slow = time.Now()
				<-d.clock.begin()
				time.Sleep(time.Minute / 2)
				began := time.Now()
				p, _ := within(ctx, d, c, 0, patience)
				if took := time.Since(began) - way; p.Int == 1 && took > patience {
					t.Errorf("%v of way: done after %v, within %v", way, took, patience)
				}
				if p.Int != 1 && (!errors.Is(p.Err, context.DeadlineExceeded) || patience > 3*way+time.Second/2) {
					t.Errorf("%v of way, within %v: %+v", way, patience, p)
				}
			})
		}
	}
}

func TestAClockThatWasSetBackIsLearned(t *testing.T) {
	c := &clocked{ahead: []time.Duration{time.Hour}, way: time.Millisecond}
	timed(t, c, func(ctx context.Context, d *Driver) {
		<-d.clock.begin()
		c.mu.Lock()
		c.ahead[0] = 0
		c.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if end, now := d.clock.end(time.Now(), "job"), time.Now().UnixMicro(); end > now {
			t.Errorf("it is believed to be %d µs ahead", end-now)
		}
	})
}

func TestALostConnectionMakesTheTimeUnknown(t *testing.T) {
	c := &clocked{ahead: []time.Duration{time.Hour}, way: time.Millisecond}
	timed(t, c, func(ctx context.Context, d *Driver) {
		<-d.clock.begin()
		d.runWithEnd(ctx, time.Now(), "job", nil, func(int64) Reply { return Reply{Err: io.EOF} })
		if end := d.clock.end(time.Now(), "job"); end != 0 {
			t.Errorf("it is %d; want it not known", end)
		}
		<-d.clock.begin()
		if p, n := within(ctx, d, c, 0, time.Second); p.Int != 1 || n != 1 {
			t.Errorf("%+v, sent %d times", p, n)
		}
	})
}

func TestInAClusterTheMasterThatIsFurthestBehindCounts(t *testing.T) {
	c := &clocked{cluster: true, ahead: []time.Duration{0, 10 * time.Millisecond, time.Hour}, way: time.Millisecond}
	timed(t, c, func(ctx context.Context, d *Driver) {
		<-d.clock.begin()
		for i, want := range []int{1, 1, 2} {
			if p, n := within(ctx, d, c, i, 100*time.Millisecond); p.Int != 1 || n != want {
				t.Errorf("node %d: %+v, sent %d times, want %d", i, p, n, want)
			}
		}
		if p, n := within(ctx, d, c, 2, 100*time.Millisecond); p.Int != 1 || n != 1 {
			t.Errorf("the one that is ahead: %+v, sent %d times; want it known by now", p, n)
		}
		time.Sleep(time.Minute)
		if end, now := d.clock.end(time.Now(), "job"), time.Now().UnixMicro(); end > now {
			t.Error("it is believed after a minute, though the name may have moved")
		}
	})
}

func TestAClockThatJumpsWithEachAnswerIsAnError(t *testing.T) {
	c := &clocked{ahead: []time.Duration{0}}
	timed(t, c, func(ctx context.Context, d *Driver) {
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

// whole is a server that can run a step, with a network before it.
type whole struct{ clocked }

func (w *whole) Subscribe(ctx context.Context, _ Channel, subscribed func(), _ func(string)) error {
	time.Sleep(2 * w.way)
	subscribed()
	<-ctx.Done()
	return ctx.Err()
}

func (w *whole) Do(_ context.Context, c Command) Reply {
	end := reader{rest: c.Args[0][1+3*8:]}
	return w.step(0)(int64(end.instant()))
}

// The driver asks for the time while it waits for the subscription, so a command that
// takes one step pays nothing for that.
func TestTheFirstClaimDoesNotWaitForTheTimeBesides(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const way = 100 * time.Millisecond
		w := &whole{clocked{ahead: []time.Duration{time.Hour}, way: way}}
		d := New(w.client(w), Options{Prefix: "pawl:", Retention: time.Hour})
		for _, want := range []time.Duration{4 * way, 2 * way} { // subscription, claim; claim
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

// In a cluster, a request was refused after a new connection, when the driver knew no
// other time. After another new connection, a server whose clock is behind may answer.
func TestANewConnectionMakesTheDriverForgetTheTimesOfSlots(t *testing.T) {
	c := &clocked{cluster: true, ahead: []time.Duration{time.Hour, 0}, way: time.Millisecond}
	timed(t, c, func(ctx context.Context, d *Driver) {
		for i, want := range []int{2, 2} {
			d.Reconnected()
			if p, n := within(ctx, d, c, i, time.Second); p.Int != 1 || n != want {
				t.Errorf("server %d: %+v, sent %d times, want %d", i, p, n, want)
			}
		}
	})
}
