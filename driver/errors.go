package driver

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors to branch on with errors.Is. The root package exports these same values.
var (
	ErrHeld          = errors.New("pawl: held by another")
	ErrNoSuchLease   = errors.New("pawl: not held by this token")
	ErrInvalid       = errors.New("pawl: invalid")
	ErrClosed        = errors.New("pawl: client closed; open another")
	ErrValueNotBelow = errors.New("pawl: the stored value is not smaller")
	ErrUnavailable   = errors.New("pawl: backend unavailable")
	ErrStale         = errors.New("pawl: stale: the lease does not hold the name any more")
)

// HeldError answers a claim that was not granted. It matches ErrHeld.
type HeldError struct {
	Name      string
	Holders   int           // how many other leases hold the name; 0 if it is only closed or has waiters ahead
	Holder    Holder        // the holder whose lease ends first; Inspect returns all of them
	Position  int           // the place in the queue, from 1; 0 if the claim did not queue
	ClosedFor time.Duration // how much longer the name stays closed, after a break or an expiry

	// Fence is the last fence granted before this answer. A SignalGranted with this fence
	// or a lower one is outdated. Either its grant ended before the claim queued again,
	// or a quorum made the grant, and this attempt did not extend it on each node.
	Fence uint64

	// RetryAfter is the time for which a claim is refused, unless another client sends a
	// request: until a closed name opens, or until Holder's lease and lock-delay end. If
	// the claim would fit beside the holders, it is at most the time until the first
	// waiter's place expires. 0 means that the driver does not know.
	RetryAfter time.Duration
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pawl: %q ", e.Name)
	switch {
	case e.Holders > 0:
		h := e.Holder
		after := ""
		if h.Released {
			after = "has released it; " // that process no longer uses the lock
		}
		fmt.Fprintf(&b, "is held by %v (%s%sfence %d, %v left)", h.Owner, after, h.kindNote(), h.Fence, round(h.ExpiresIn))
		if n := e.Holders - 1; n > 0 {
			fmt.Fprintf(&b, " and %d more", n)
		}
		if e.ClosedFor > 0 {
			fmt.Fprintf(&b, ", and closed for another %v", round(e.ClosedFor))
		}
	case e.ClosedFor > 0:
		fmt.Fprintf(&b, "is closed for another %v, after a holder was broken or expired", round(e.ClosedFor))
	default:
		b.WriteString("has waiters ahead")
	}
	if e.Position > 0 {
		fmt.Fprintf(&b, "; place %d in the queue", e.Position)
	}
	return b.String()
}

// ValueNotBelowError answers a claim because the name's value is not below its
// ValueBelow. It matches ErrValueNotBelow.
type ValueNotBelowError struct {
	Name  string
	Value []byte // the value of the name
	Fence uint64 // the fence of the lease that wrote Value
}

// Is makes errors.Is(err, ErrValueNotBelow) true.
func (e *ValueNotBelowError) Is(target error) bool { return target == ErrValueNotBelow }

func (e *ValueNotBelowError) Error() string {
	return fmt.Sprintf("pawl: %q has the value %.80q, which is not smaller", e.Name, e.Value)
}

// BrokenError answers a request for a lease that was broken. It matches ErrNoSuchLease.
type BrokenError struct {
	By        Owner
	ClosedFor time.Duration // the backend grants the name to no client for this long, from the sending of the request
}

// Is makes errors.Is(err, ErrNoSuchLease) true.
func (e *BrokenError) Is(target error) bool { return target == ErrNoSuchLease }

func (e *BrokenError) Error() string { return "pawl: broken by " + e.By.String() }

// InvalidError refuses input before anything is sent. It matches ErrInvalid.
type InvalidError struct {
	Argument string // the name of the argument: "name", "TTL", ...
	Problem  string // what was wrong; messages print it after Argument: "is 1ms"
	Allowed  string // what would have been right
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func (e *InvalidError) Error() string {
	return fmt.Sprintf("pawl: %s %s; allowed: %s", e.Argument, e.Problem, e.Allowed)
}

// Op is the operation that a client asked of a backend, as errors name it.
type Op string

// The operations of clients. A backend may define more.
const (
	OpOpen     Op = "open"
	OpAcquire  Op = "acquire"
	OpRenew    Op = "renew"
	OpRelease  Op = "release"
	OpBreak    Op = "break"
	OpRead     Op = "read" // one name: Inspect, Watch, WaitUntilFree, Leader
	OpList     Op = "list"
	OpDiagnose Op = "diagnose"
	OpClose    Op = "close"
)

// Error says that the backend failed. It matches ErrUnavailable, and has the backend's
// own error inside.
type Error struct {
	Backend   string // its name and location: "sqlite /var/lib/pawl/locks.db". Never a password
	Op        Op     // the request
	Name      string // the name that the operation concerned; "" if not a single one
	Hint      string // what an operator can do; may be empty
	Permanent bool   // a repeat will not help: wrong password, file is no database, ...
	Err       error
}

// Is makes errors.Is(err, ErrUnavailable) true.
func (e *Error) Is(target error) bool { return target == ErrUnavailable }

// Unwrap gives the backend's own error.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	s := "pawl: " + e.Backend + ": " + string(e.Op)
	if e.Name != "" {
		s += fmt.Sprintf(" %q", e.Name)
	}
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.Err.Error(), "pawl: ") // not twice
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// round keeps a duration readable: four digits are enough.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}
