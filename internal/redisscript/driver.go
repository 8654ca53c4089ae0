package redisscript

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Options for a Driver.
type Options struct {
	Prefix    string        // of all keys and channels
	Retention time.Duration // how long the last fence of a name is remembered after its last grant
	Push      bool          // subscribe, so that waiters are told
	Watch     bool          // the sender is a Watcher, and will call [Driver.Invalidated]
	Unwatched string        // why not, for people

	Replicas       int           // how many have to acknowledge a grant before it is shown
	ReplicaTimeout time.Duration // how long they have for that
}

// DefaultRetention is how long the last fence of a name is remembered, if nothing else is said.
const DefaultRetention = 24 * time.Hour

// Validate fills in the defaults, and refuses what cannot be used.
func (o *Options) Validate() error {
	if o.Prefix == "" {
		o.Prefix = "pawl:"
	}
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	for _, r := range o.Prefix {
		if r == '{' || r == '}' {
			return &driver.InvalidError{What: "prefix", Problem: "has a brace, and a cluster would see a hash tag in it", Allowed: "no braces"}
		}
	}
	if o.Retention < time.Minute || o.Retention > driver.MaxTTL {
		return &driver.InvalidError{What: "retention", Problem: "is " + o.Retention.String(), Allowed: "1m to 720h"}
	}
	return o.validateReplicas()
}

// Driver is a client of the lock scripts. It implements driver.Driver, driver.Signaler, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser.
type Driver struct {
	Options
	sender    *prompt
	pool      Pooled // the sender under it, nil if it is none
	backend   string // how errors name it
	signals   *subscriber
	tracking  *tracker // nil if the server does not tell of changes
	coalescer *coalescer
	clock     *clock
	strays    strays
	busy      *busy
	signed    atomic.Pointer[signature]
	agreed    atomic.Pointer[terms]
	closed    atomic.Bool
}

// New makes a driver over a client. The options have been validated.
func New(s Sender, o Options) *Driver {
	d := &Driver{Options: o, backend: "redis " + s.Where()}
	d.signals = newSubscriber(s, o.Prefix, o.Push)
	d.signals.hint = o.Replicas > 0
	d.sender = newPrompt(s, d.signals.life)
	d.pool, _ = s.(Pooled)
	d.clock, d.busy = newClock(d.sender, d.signals.life, &d.signals.loops), newBusy()
	d.signals.again = d.clock.forget
	d.coalescer = newCoalescer(s, o.Prefix, d.signals.life, d.clock)
	if server, ok := s.(Watcher); ok && o.Watch {
		d.tracking = newTracker(server, o.Prefix)
		d.signals.granted = func(t driver.Token) { d.tracking.held(t, 0) }
		d.signals.loops.Go(func() { d.tracking.run(d.signals.life, d.lost) })
	}
	return d
}

// newID draws the address of a driver's signals. It is no secret, only unlike any other.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	if err := d.ready(ctx); err != nil {
		return driver.Grant{}, err
	}
	signed, err := d.begin(ctx, &c)
	if err != nil {
		return driver.Grant{}, d.trouble(ctx, "acquire", c.Name, err)
	}
	d.tracking.claim(&c)
	p := d.timely(ctx, c.Name, &c, func(end int64) Reply { return d.claim(ctx, &c, end, signed) })
	if p.Err == nil && p.Text != "" && p.Text[0] == 'h' {
		if !c.Queue {
			d.tracking.over(c.Token)
		}
		var seen *snapshot
		if seen, p.Err = readSnapshot(p.Text); p.Err == nil {
			return driver.Grant{}, seen.refusal(&c)
		}
	}
	var g driver.Grant
	if p.Err == nil {
		g, p.Err = readGrant(p, &c)
	}
	if p.Err == nil {
		p.Err = ended(ctx) // a grant that is shown too late is for nobody
	}
	if p.Err != nil {
		return driver.Grant{}, d.trouble(ctx, "acquire", c.Name, p.Err)
	}
	if err := d.confirm(ctx, &c); err != nil {
		return driver.Grant{}, err
	}
	d.tracking.held(c.Token, c.TTL)
	return g, nil
}

// claim sends a claim: together with others if that can be, else by itself.
func (d *Driver) claim(ctx context.Context, c *driver.Claim, end int64, signed string) Reply {
	if quick(c) && d.shares(c.Name) {
		p, done := d.quickly(ctx, c.Name, quickStep{
			kind: quickAcquire, token: c.Token, end: end, terms: d.termsOf(c, signed), fences: run(c), wish: c.MinFence,
		})
		defer d.coalescer.leave()
		if done {
			return p
		}
	}
	step, args := Acquire, []string{claimArg(c, d.Retention, end, signed), waitArg(c)}
	if c.Force {
		step, args = Force, append(args, string(locktable.AppendOwner(nil, c.Owner)))
	}
	return d.run(ctx, step, Call{Keys: keys(d.Prefix, c.Name), Args: args})
}

// begin listens before anything is claimed, for the signal may come before the answer that says "queued"; meanwhile it asks for
// the time, if that is not known. It returns what is stored of who claims.
func (d *Driver) begin(ctx context.Context, c *driver.Claim) (signed string, err error) {
	asked := d.clock.begin()
	box, shard, err := d.signals.open(ctx, c)
	if err != nil {
		return "", err
	}
	if asked != nil {
		select {
		case <-asked:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return d.sign(box, shard, &c.Owner), nil
}

func (d *Driver) sign(box, shard string, o *driver.Owner) string {
	last := d.signed.Load()
	if !last.of(box, shard, o) {
		last = &signature{box, shard, *o, who(box, shard, o)}
		d.signed.Store(last)
	}
	return last.text
}

// Renew implements driver.Driver: a script for each 64 leases, or in a cluster for each one, all of them in one pipeline. One script
// for thousands would stop the server for as long as it takes.
func (d *Driver) Renew(ctx context.Context, renewals []driver.LeaseRef) ([]error, error) {
	calls := make([]Call, len(renewals))
	for i := range renewals {
		l := &renewals[i]
		if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL)); err != nil {
			return nil, err
		}
		calls[i] = Call{Keys: keys(d.Prefix, l.Name), Args: []string{renewArg(l, d.Retention)}}
	}
	if err := d.ready(ctx); err != nil || len(renewals) == 0 {
		return nil, err
	}
	for i := range renewals {
		d.tracking.renewing(renewals[i].Token)
	}
	answers, failed := make([]error, len(renewals)), 0
	for i, p := range d.runAllQuickly(ctx, Renew, calls) {
		l := &renewals[i]
		if p.Err != nil {
			answers[i] = d.trouble(ctx, "renew", l.Name, p.Err)
			d.tracking.held(l.Token, 0)
			failed++
			continue
		}
		if answers[i] = readEnd(p); answers[i] != nil {
			d.tracking.over(l.Token)
		} else {
			d.tracking.held(l.Token, l.TTL)
		}
	}
	if failed == len(answers) && (failed > 1 || ended(ctx) != nil) {
		return nil, answers[0] // nothing is known of any of them
	}
	return answers, nil
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateDelay("minimum hold", l.MinHold)); err != nil {
		return err
	}
	if err := d.ready(ctx); err != nil {
		return err
	}
	d.tracking.over(l.Token)
	d.strays.releasing(l.Token)
	var p Reply
	if l.OnTime {
		p = d.timely(ctx, l.Name, nil, func(end int64) Reply { return d.release(ctx, &l, end) })
	} else {
		p = d.atMostOnce(ctx, func() Reply { return d.release(ctx, &l, 0) })
	}
	if p.Err != nil {
		return d.trouble(ctx, "release", l.Name, p.Err)
	}
	return readEnd(p)
}

// release sends a release: together with others if that can be, else by itself.
func (d *Driver) release(ctx context.Context, l *driver.LeaseRef, end int64) Reply {
	if !l.OnTime && l.MinHold == 0 && d.shares(l.Name) {
		p, done := d.quickly(ctx, l.Name, quickStep{kind: quickRelease, token: l.Token})
		defer d.coalescer.leave()
		if done {
			return p
		}
	}
	return d.run(ctx, Release, Call{Keys: keys(d.Prefix, l.Name), Args: []string{releaseArg(l, d.Retention, end)}})
}

// Break implements driver.LeaseBreaker.
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	err := errors.Join(driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate(), d.ready(ctx))
	if err != nil {
		return err
	}
	args := []string{breakArg(fence, delay, d.Retention), string(locktable.AppendOwner(nil, by))}
	p := d.atMostOnce(ctx, func() Reply { return d.run(ctx, Break, Call{Keys: keys(d.Prefix, name), Args: args}) })
	if p.Err != nil {
		return d.trouble(ctx, "break", name, p.Err)
	}
	return readEnd(p)
}

// RaiseFence implements driver.FenceRaiser.
func (d *Driver) RaiseFence(ctx context.Context, l driver.LeaseRef, fence uint64) (uint64, error) {
	if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateFence(fence)); err != nil {
		return 0, err
	}
	if err := d.ready(ctx); err != nil {
		return 0, err
	}
	d.tracking.renewing(l.Token)
	raise := Call{Keys: keys(d.Prefix, l.Name), Args: []string{raiseArg(&l, fence, d.Retention)}}
	p := d.twice(ctx, func() Reply { return d.run(ctx, Raise, raise) })
	d.tracking.held(l.Token, 0)
	var seen *snapshot
	switch {
	case p.Err != nil:
	case p.Text == "" && p.Int > 0:
		return uint64(p.Int), nil
	case p.Text != "" && p.Text[0] == 'h':
		if seen, p.Err = readSnapshot(p.Text); p.Err == nil {
			return 0, seen.refusal(&driver.Claim{Name: l.Name})
		}
	default:
		return 0, readEnd(p)
	}
	return 0, d.trouble(ctx, "raise", l.Name, p.Err)
}

// Inspect implements driver.Driver.
func (d *Driver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := errors.Join(driver.ValidateName(name), d.ready(ctx)); err != nil {
		return driver.Entry{}, err
	}
	p := d.twice(ctx, func() Reply { return d.run(ctx, Read, Call{Keys: keys(d.Prefix, name)}) })
	return d.entry(ctx, name, p)
}

func (d *Driver) entry(ctx context.Context, name string, p Reply) (driver.Entry, error) {
	var seen *snapshot
	if p.Err == nil {
		seen, p.Err = readSnapshot(p.Text)
	}
	if p.Err != nil {
		return driver.Entry{}, d.trouble(ctx, "read", name, p.Err)
	}
	return seen.public(name), nil
}

// Listen implements driver.Signaler.
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) { return d.signals.listeners.Listen(f) }

// Properties implements driver.Driver.
func (d *Driver) Properties() driver.Properties {
	return driver.Properties{
		Backend: "redis",
		Clock:   "server",
		FenceSurvives: "restarts, FLUSHALL, fail-overs and lost data, as long as the server's clock does not go back past the last grant " +
			"whose name was lost or forgotten",
		MinTTL:           driver.MinTTL,
		Push:             d.signals.works(),
		ReportsDeletions: d.tracking.works(),
	}
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.clock.stop()
	d.signals.close()
	err := d.sender.Close()
	d.sender.close() // what was still under way ends with the connections, if they were ours
	return err
}

func (d *Driver) ready(ctx context.Context) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	return ctx.Err()
}
