package pawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options configure a client. The zero value and nil work: each field states its default.
type Options struct {
	// ID names this client to people, as the owner of its leases. Default: "~" and 16
	// random digits, which errors and lists do not show.
	ID string

	// Namespace is the prefix of a namespace: the client sees only its names, as a client
	// from [Client.Namespace] does. Default: none.
	Namespace string
	path      []string // the namespaces inside Namespace, the outer ones first; only cmd/pawl sets them

	// TTL is the time for which a lease lasts without a renewal, and so the time for
	// which a killed process keeps a name. 10 ms to 30 days, and no less than the backend
	// can keep (Properties.MinTTL: 50 ms on MySQL, 1 s on etcd); default 30 s. WithTTL
	// sets the TTL of one lock.
	TTL time.Duration

	// QueueTTL is the time for which the queue keeps the place of a waiter that was
	// killed. The waiters behind it may wait that much longer. Behind 64 or more waiters,
	// the queue keeps a place up to four times as long. 10 ms to 30 days, and no less
	// than the backend can keep; default 5 s, or TTL if that is less.
	QueueTTL time.Duration

	// RequestTimeout bounds one request to the backend: 0 to 1 minute. The default, 0,
	// means a sixth of the lock's TTL, or 3 s if that is less.
	RequestTimeout time.Duration

	// RetryFor is the time for which Open, and a waiting claim, retry a backend that
	// fails before they return ErrUnavailable. Default 10 s; a negative value means not
	// at all. A try never retries.
	RetryFor time.Duration

	// HandoffWindow is the time after a grant in which a process may pass an exclusive
	// lease to its own waiters, one after the other, before another process gets its
	// turn. Each pass saves two requests. A process that had to wait for its turn passes
	// the lease only to claims that already waited at the grant. At most 1 s; default 10
	// ms; a negative value means one lease a turn.
	HandoffWindow time.Duration

	// Labels are shown with every lease of this client. At most 16, together with those
	// of WithLabel; keys and values have 256 bytes at most. New copies them.
	Labels map[string]string

	// Observer gets the events of the client's locks. Default: none.
	Observer *Observer
}

// maxHandoffWindow is the maximum of Options.HandoffWindow.
const maxHandoffWindow = time.Second

// settings are checked options, with defaults filled in.
type settings struct {
	Options
	owner driver.Owner
}

func (o *Options) toSettings() (settings, error) {
	s := settings{}
	if o != nil {
		s.Options = *o
		s.Labels = maps.Clone(o.Labels) // the caller may change its own map
	}
	if s.Observer != nil {
		s.Observer = new(*s.Observer)
	}
	if s.ID == "" {
		b := make([]byte, 8)
		_, _ = rand.Read(b)                // rand.Read never returns an error
		s.ID = "~" + hex.EncodeToString(b) // in the form that driver.Owner.ShortString hides
	}
	s.TTL = cmp.Or(s.TTL, 30*time.Second)
	s.QueueTTL = cmp.Or(s.QueueTTL, min(5*time.Second, s.TTL))
	s.RetryFor = cmp.Or(s.RetryFor, 10*time.Second)
	s.HandoffWindow = cmp.Or(s.HandoffWindow, 10*time.Millisecond)
	host, _ := os.Hostname() // for people only; an owner without a host still has its pid and id
	host = strings.ToValidUTF8(host[:min(len(host), driver.MaxLabelSize)], "")
	s.owner = driver.Owner{Client: s.ID, Host: host, PID: os.Getpid(), Labels: s.Labels}

	if s.Namespace != "" {
		s.path = append([]string{s.Namespace}, s.path...) // in settings, path starts with Namespace
	}
	for _, prefix := range s.path {
		if err := validateNamespace(prefix); err != nil {
			return s, err
		}
	}
	switch err := cmp.Or(driver.ValidateTTL("TTL", s.TTL), driver.ValidateTTL("QueueTTL", s.QueueTTL)); {
	case err != nil:
		return s, err
	case s.RequestTimeout < 0 || s.RequestTimeout > driver.MaxRequest:
		return s, invalid("RequestTimeout", "is "+s.RequestTimeout.String(), "0 to "+driver.MaxRequest.String())
	case s.HandoffWindow > maxHandoffWindow:
		return s, invalid("HandoffWindow", "is "+s.HandoffWindow.String(), maxHandoffWindow.String()+" or less")
	}
	return s, s.owner.Validate()
}

// validateNamespace refuses a prefix that could not be part of a name.
func validateNamespace(prefix string) error {
	bad, isInvalid := errors.AsType[*InvalidError](driver.ValidateName(prefix))
	if !isInvalid {
		return nil
	}
	return invalid("namespace", bad.Problem, bad.Allowed)
}

// spaceOf returns the prefix of each name of a namespace. It starts with outer, if any.
func spaceOf(outer, prefix string) string {
	if outer = strings.TrimSuffix(outer, ":"); outer == "" {
		outer = "@"
	} else {
		outer += "/"
	}
	return outer + spaceEscapes.Replace(prefix) + ":"
}

// spaceEscapes escapes ":", which ends a namespace, and "/", which separates its
// prefixes.
var spaceEscapes = strings.NewReplacer("%", "%25", "/", "%2F", ":", "%3A")

// checkTTLs refuses times that are too short for a backend.
func (s *settings) checkTTLs(p driver.Properties) error {
	return cmp.Or(checkMinTTL("TTL", s.TTL, p), checkMinTTL("QueueTTL", s.QueueTTL, p))
}

// checkMinTTL refuses a TTL that is shorter than the backend can keep, because the client
// could not renew in time.
func checkMinTTL(what string, d time.Duration, p driver.Properties) error {
	if d >= p.MinTTL {
		return nil
	}
	return invalid(what, "is "+d.String(), fmt.Sprintf("%v or more on %s", p.MinTTL, p.Backend))
}

// A LockOption changes one lock. Pass it to the call that makes the lock:
// locks.Mutex("report", pawl.WithTTL(5*time.Second)). It is a [OnceOption] too. A nil
// option changes nothing. Locking returns ErrInvalid for an option without effect there,
// such as WithValueBelow for an Election.
type LockOption interface {
	OnceOption
	ofLock(o *lockOptions)
}

type lockOption func(*lockOptions)

func (set lockOption) ofLock(o *lockOptions) { set(o) }
func (set lockOption) ofOnce(o *onceOptions) { set(&o.lockOptions) }

// grantOption returns an option that has an effect only at a grant: Attach refuses it.
func grantOption(name string, set func(*lockOptions)) LockOption {
	return lockOption(func(o *lockOptions) { o.grantOption = name; set(o) })
}

type lockOptions struct {
	owner       driver.Owner // of the client, with the labels of the lock
	ttl         time.Duration
	margin      time.Duration // 0: a default that depends on the TTL
	minHold     time.Duration
	lockDelay   time.Duration
	maxHold     time.Duration
	wait        time.Duration // 0: as long as ctx lasts; below 0: refused
	value       []byte        // nil: the name keeps its value
	valueBelow  []byte        // nil: the name's value does not matter
	health      func(ctx context.Context) error
	nilHealth   bool   // WithHealth was called with nil
	grantOption string // the last option that grantOption made; "" if there is none
}

// A OnceOption changes a [Once]: [WithAtLeastOnce], [WithUnorderedKeys], or a
// [LockOption]. A nil option changes nothing.
type OnceOption interface{ ofOnce(o *onceOptions) }

type onceOptions struct {
	lockOptions
	atLeastOnce, unordered bool
}

type onceOption func(*onceOptions)

func (set onceOption) ofOnce(o *onceOptions) { set(o) }

// WithTTL sets how long a lease lasts without a renewal: 10 ms to 30 days, and no less
// than the backend can keep (Properties.MinTTL). Default: Options.TTL.
func WithTTL(d time.Duration) LockOption {
	return grantOption("WithTTL", func(o *lockOptions) { o.ttl = d })
}

// WithMinHold keeps the name held until d after the grant, even if the lease is released
// before: for a short job that must not run twice within d. 0 to 30 days, and no more
// than WithMaxHold; default 0. A process that dies holds the name for its TTL instead,
// which may be shorter or longer than d. For the ticks of a schedule, use [Once]: it
// remembers a tick even after a crash.
func WithMinHold(d time.Duration) LockOption {
	return grantOption("WithMinHold", func(o *lockOptions) { o.minHold = d })
}

// WithLockDelay keeps the name closed for d after a lease expires (not after a release),
// so that a holder that was paused detects the loss before the next holder begins. 0 to
// 30 days; default 0.
func WithLockDelay(d time.Duration) LockOption {
	return grantOption("WithLockDelay", func(o *lockOptions) { o.lockDelay = d })
}

// WithMaxHold limits the time for which a lease is held to d, 10 ms to 30 days; default:
// no limit. Shortly before d is over, the lease is lost with ReasonMaxHold, and the
// context of Do's function f ends. [WithGrace] sets how long before: by default at most
// 10 ms or a tenth of the TTL, whichever is longer. The context's Deadline does not show
// it. The backend grants the name to the next holder when d is over, or as soon as f
// returns and the lease is released. An f that ignores its context may run at the same
// time as the next holder; an f that returns before LostError.StopBy does not. To end f
// alone, use context.WithTimeout inside it: then the lock is held until f returns.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(o *lockOptions) { o.maxHold = d })
}

// WithWait bounds the wait of Lock, Acquire and Do, of RLock and RDo, and of [Once.Do] to
// d, more than 0. Unlike a deadline of ctx, it does not bound the work after the wait.
// Default: as long as ctx allows. The error matches context.DeadlineExceeded, and ErrHeld
// if others hold the lock. [All] waits for all its locks together, for the shortest d
// among them. TryLock, TryDo and ForceLock do not wait. Election.Run and Attach refuse
// WithWait.
//
// While the backend fails, the wait may end sooner, with ErrUnavailable: after
// Options.RetryFor, 10 s by default, and one request. To outlast a dead holder, d must be
// greater than its TTL: a wait as long as the TTL may end just before the lease does.
func WithWait(d time.Duration) LockOption {
	return grantOption("WithWait", func(o *lockOptions) {
		o.wait = d
		if d <= 0 {
			o.wait = -1
		}
	})
}

// WithGrace sets how much time a holder has to stop after a loss: the client notifies the
// holder that long before the lease ends in the backend. The default is also the minimum:
// 10 ms or a tenth of the lease's duration, whichever is longer. The maximum is half of
// the TTL, and of WithMaxHold. The lease's duration is its TTL, or less right after a
// grant from the queue and near the end of WithMaxHold.
func WithGrace(d time.Duration) LockOption { return lockOption(func(o *lockOptions) { o.margin = d }) }

// WithLabel adds a label to the lock's leases, in addition to Options.Labels, which has
// the limits. Inspect and List show each lease with its labels.
func WithLabel(key, value string) LockOption {
	return grantOption("WithLabel", func(o *lockOptions) {
		o.owner.Labels = maps.Collect(maps.All(o.owner.Labels)) // a copy: the client and its other locks share the map
		o.owner.Labels[key] = value
	})
}

// noEffectError returns the error for an option that has no effect where it was given.
func noEffectError(option, where, allowed string) error {
	return invalid(option, "has no effect on "+where, allowed)
}
