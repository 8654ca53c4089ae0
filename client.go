package pawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/localqueue"
	"github.com/pawl-go/pawl/internal/trust"
)

// Client makes locks over one backend, and renews and watches all of them. A process needs one
// for each backend. Many goroutines may use it.
type Client struct {
	driver   driver.Driver
	backend  string // its name, for messages
	settings settings
	observer *Observer
	now      func() clock.Reading
	born     time.Time // what claim.stray is counted from

	queues   *localqueue.Queues[*claim]
	inboxes  *allInboxes
	renewer  *renewer
	returner *returner

	mu      sync.Mutex
	closed  bool
	closing chan struct{} // closed when Close or Shutdown begins: who waits gives up
	refused sync.Once
	done    chan struct{} // closed when Close has ended
	err     error         // what Close answered; written before done is closed

	claims     *calls         // under way; nobody enters once closing is closed
	releases   *calls         // under way; nobody enters once closed is set
	functions  *calls         // of Do
	background sync.WaitGroup // renewals, and what the Observer is told aside
	drained    bool           // protected by mu: nothing is added to background any more
	stopRun    context.CancelFunc
	ran        chan struct{} // closed when the renewer's goroutine has ended
	stopListen func()
}

// New returns a client over a driver, for example one of redislock.New or memlock.New. Close
// closes the driver too, which frees what it opened itself and nothing that it was given. o may be
// nil. The error matches ErrInvalid.
func New(d driver.Driver, o *Options) (*Client, error) {
	if d == nil {
		return nil, &InvalidError{What: "driver", Problem: "is nil", Allowed: "a backend's driver"}
	}
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	return start(d, s, clock.New().Now), nil
}

func start(d driver.Driver, s settings, now func() clock.Reading) *Client {
	c := &Client{
		driver: d, backend: d.Properties().Backend, settings: s, observer: s.Observer, now: now, born: time.Now(),
		queues: newQueues(s.LocalHandoff), inboxes: newInboxes(),
		claims: newCalls(), releases: newCalls(), functions: newCalls(),
		closing: make(chan struct{}), done: make(chan struct{}),
		ran: make(chan struct{}), stopListen: func() {},
	}
	c.renewer, c.returner = newRenewer(c), newReturner(c)
	if d, ok := d.(driver.Signaler); ok {
		c.stopListen = d.Listen(c.signal)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stopRun = cancel
	go func() {
		defer close(c.ran)
		c.renewer.run(ctx)
	}()
	return c
}

// signal is called by the driver, and must not block.
func (c *Client) signal(s driver.Signal) {
	if s.Token.IsZero() {
		c.inboxes.lookAll(s)
		c.renewer.Check(c.now().Mono)
		return
	}
	if t := c.inboxes.of(s.Token).put(s); t != nil && s.Kind != driver.SignalGranted {
		c.renewer.Check(c.now().Mono, &t.renewal)
	}
}

// attempt bounds one request to the backend, by the context in b. The caller cancels it.
func (c *Client) attempt(ctx context.Context, b *bounded, ttl time.Duration, now time.Time) *bounded {
	d := c.settings.RequestTimeout
	if d == 0 {
		d = trust.RequestTimeout(ttl)
	}
	return b.bind(ctx, now.Add(d))
}

// spawn runs f in a goroutine for which Close waits. It answers false, and f does not run, once Close is past
// that.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained {
		return false
	}
	c.background.Go(f)
	return true
}

const (
	// closePatience is how long Close waits for the backend if its ctx does not say.
	closePatience = 15 * time.Second
	// lastPatience is how much longer the last round of releases may take, when its ctx is over.
	lastPatience = time.Second
)

// Close ends the client, in this order: new claims are refused; who waits gets ErrClosed and leaves the
// queue; leases are lost with ReasonClosed, so that their holders stop, and are released; goroutines end; the
// driver is closed. [Client.Shutdown] lets the holders finish first.
//
// ctx bounds how long it waits for the backend; without a deadline it waits for 15 s. When that is over, or was when
// Close was called, what is left is released once more, for which there is a second, and one for the driver to end what
// it has under way. What was not confirmed even so ends by itself: then the error is a [*CloseError] with the number. A
// second Close waits for the first, as long as its own ctx lasts, and answers the same.
func (c *Client) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if !first {
		select {
		case <-c.done:
			return c.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	claimed := c.refuse()
	held := c.renewer.Stop() // before releases are shut: one that is refused leaves its lease to us
	released := c.releases.shut()
	c.returner.returns.Closing()
	for _, t := range held {
		now := c.now()
		t.lose(LostError{Reason: ReasonClosed, Until: now.Mono})
		if !t.givenBack() { // else its Release is under way, and would be told that it was not held
			c.returner.giveBack(t, now.Mono)
		}
	}
	c.stopRun() // also those renewals that are under way, for nobody needs them
	<-c.ran
	c.err = c.drain(ctx, claimed, released)
	c.stopListen()
	if err := c.closeDriver(ctx); c.err == nil {
		c.err = err
	}
	close(c.done)
	return c.err
}

// closeDriver closes the driver. One that waits for a backend that does not answer is left to that when Close may take no
// longer.
func (c *Client) closeDriver(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- c.driver.Close() }()
	patience := time.NewTimer(lastPatience)
	defer patience.Stop()
	select {
	case err := <-closed:
		return err
	case <-patience.C:
	}
	if ctx.Err() == nil {
		patience.Reset(closePatience)
		if _, bounded := ctx.Deadline(); bounded {
			patience.Stop()
		}
		select {
		case err := <-closed:
			return err
		case <-ctx.Done():
		case <-patience.C:
		}
	}
	return unavailable(c.backend, "close", "", errNoAnswer)
}

// drain waits until calls have left and everything is given back.
func (c *Client) drain(ctx context.Context, claimed, released <-chan struct{}) error {
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-claimed // first: a call under way may still leave something to undo
		<-released
		c.mu.Lock()
		c.drained = true
		c.mu.Unlock()
		c.background.Wait()
		<-c.returner.finish()
	}()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	if _, bounded := ctx.Deadline(); bounded {
		patience.Stop()
	}
	drained := true
	select {
	case <-over:
	case <-ctx.Done():
		drained = c.lastRound(over)
	case <-patience.C:
		drained = c.lastRound(over)
	}
	unreleased, failure := c.returner.abandon()
	if !drained { // else whoever is counted as in is just being refused
		unreleased += c.claims.in() + c.releases.in() // they may still be granted
	}
	if unreleased == 0 {
		return nil
	}
	err := unavailable(c.backend, "release", "", cmp.Or(failure, errNoAnswer))
	if ended := ctx.Err(); ended != nil {
		err = ended
		if failure != nil {
			err = fmt.Errorf("%w: %w", ended, failure)
		}
	}
	return &CloseError{Unreleased: unreleased, Err: err}
}

// lastRound has everything released once more, and waits a little for the answers. It reports whether all is over.
func (c *Client) lastRound(over <-chan struct{}) bool {
	c.returner.lastRound()
	patience := time.NewTimer(lastPatience)
	defer patience.Stop()
	select {
	case <-over:
		return true
	case <-patience.C:
		return false
	}
}

// refuse takes no more claims, and has those that wait give up. What it returns is closed when the last is over.
func (c *Client) refuse() <-chan struct{} {
	claimed := c.claims.shut()
	c.refused.Do(func() { close(c.closing) })
	return claimed
}

func randomID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it ends the program rather than fail
	return hex.EncodeToString(b)
}
