package redisscript

import (
	"sync/atomic"

	"github.com/pawl-go/pawl/driver"
)

// Driver is a client of the lock scripts. It implements driver.Driver, driver.Signaler,
// driver.Watcher, driver.Lister, driver.LeaseBreaker, driver.FenceRaiser,
// driver.AllAcquirer and driver.Diagnoser.
type Driver struct {
	Options
	watches       watcherState
	client        *Client
	conn          bounded
	backend       string // names the server in errors
	signals       *subscriber
	tracking      *tracker // nil if the server does not report changes
	coalescer     *coalescer
	clock         *clock
	unanswered    unansweredClaims
	statesRefused atomic.Bool // the server has refused a command that States calls
	closed        atomic.Bool
}

// New makes a driver over a client. The caller has validated the options.
func New(c *Client, o Options) *Driver {
	d := &Driver{Options: o, client: c, backend: "redis " + c.Location}
	if o.Prefix != defaultPrefix {
		d.backend += " prefix=" + o.Prefix
	}
	d.signals = newSubscriber(d)
	d.conn = newBounded(c, d.signals.life)
	d.clock = newClock(d.conn, &d.signals.loops)
	d.watches.OnFirstWatch(d.followName)
	d.unanswered.released = map[driver.Token]bool{}
	d.coalescer = newCoalescer(c, &d.Options, d.signals.life, d.clock)
	if c.Watch != nil {
		d.tracking = newTracker(c.Watch, o.Prefix, &d.signals.listeners)
		d.signals.loops.Go(func() { d.tracking.run(d.signals.life) })
	}
	return d
}

// Listen implements driver.Signaler.
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) { return d.signals.listeners.Listen(f) }

// Properties implements driver.Driver.
func (d *Driver) Properties() driver.Properties {
	return driver.Properties{
		Backend:          "redis",
		Location:         d.backend,
		Clock:            driver.ClockServer,
		FenceSurvives:    driver.FencesRiseByClock,
		MinTTL:           driver.MinTTL,
		PushesGrants:     d.signals.works(),
		PushesChanges:    d.signals.works() && d.watches.watchesDown.Load() == 0,
		ReportsDeletions: d.tracking.works(),
	}
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.watches.Close()
	d.signals.close()
	if d.client.Close != nil {
		d.client.Close()
	}
	d.conn.close() // the closed connections have ended the requests under way
	return nil
}
