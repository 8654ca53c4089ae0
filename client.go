package pawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/inbox"
	"github.com/pawl-go/pawl/internal/localqueue"
)

// Client makes locks over one backend, and renews and watches all of them. A process
// needs one for each backend. Many goroutines may use it.
type Client struct {
	driver   driver.Driver
	backend  string            // its name, and where it is, for messages
	facts    driver.Properties // of the driver, as they were at the beginning
	settings settings
	observer *Observer
	now      func() clock.Reading
	born     time.Time // what claim.stray is counted from

	queues   *localqueue.Queues[*claim]
	inboxes  *inbox.Inboxes[*hold]
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

// New returns a client over a driver, for example one of redislock.New or memlock.New.
// Close closes the driver too, which frees what it opened itself and nothing that it was
// given. o may be nil. The error matches ErrInvalid; it is also for times in o that are
// shorter than the backend can keep, see [Properties].
func New(d driver.Driver, o *Options) (*Client, error) {
	if v := reflect.ValueOf(d); d == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &InvalidError{What: "driver", Problem: "is nil", Allowed: "a backend's driver"}
	}
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	if err := s.fits(d.Properties()); err != nil {
		return nil, err
	}
	return start(d, s, clock.New().Now), nil
}

// made reports whether New has made the client.
func (c *Client) made() bool { return c != nil && c.driver != nil }

func start(d driver.Driver, s settings, now func() clock.Reading) *Client {
	p := d.Properties()
	c := &Client{
		driver: d, backend: cmp.Or(p.Where, p.Backend), facts: p, settings: s, observer: s.Observer, now: now, born: time.Now(),
		queues: newQueues(s.LocalHandoff), inboxes: inbox.New[*hold](),
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
		c.inboxes.PutAll(s)
		c.renewer.Check(c.now().Mono)
		return
	}
	for _, t := range c.inboxes.Put(s) {
		if s.Kind != driver.SignalGranted {
			c.renewer.Check(c.now().Mono, &t.renewal)
		}
	}
}

// spawn runs f in a goroutine for which Close waits. It answers false, and f does not
// run, once Close is past that.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained {
		return false
	}
	c.background.Go(f)
	return true
}

// Format implements fmt.Formatter. Clients and leases hold tokens, in fields where fmt
// prints them whatever their type says of itself: so they print as their names, with
// every verb.
func (c *Client) Format(f fmt.State, _ rune) {
	if !c.made() {
		_, _ = io.WriteString(f, "pawl client of nothing")
		return
	}
	_, _ = fmt.Fprintf(f, "pawl client %s of %s", c.settings.ID, c.backend)
}

func randomID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it ends the program rather than fail
	return hex.EncodeToString(b)
}
