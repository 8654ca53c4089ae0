package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// The errors to branch on with errors.Is. Most come with details for errors.As: see the
// types below.
var (
	// ErrHeld means that the lock was not granted, because others hold it or wait for it.
	// A [*HeldError] names one of them.
	ErrHeld = driver.ErrHeld
	// ErrLost means that the lease ended without a release. A [*LostError] says why.
	ErrLost = errors.New("pawl: lock lost")
	// ErrReleased is what Lease.Err returns after a release, and the cause of its
	// context's end.
	ErrReleased = errors.New("pawl: lock released")
	// ErrUnavailable means that the backend could not be asked, or did not answer. A
	// [*BackendError] says what failed, and has the backend's own error inside.
	ErrUnavailable = driver.ErrUnavailable
	// ErrClosed means that the client is closed.
	ErrClosed = driver.ErrClosed
	// ErrInvalid means that the input was refused before anything was sent. An
	// [*InvalidError] says what is allowed.
	ErrInvalid = driver.ErrInvalid
	// ErrNotHeld means that no lease has the fence that Break was asked to break.
	ErrNotHeld = driver.ErrNotHeld
	// ErrValue means that the lock was not granted, because the name keeps a value that
	// is not smaller than WithAbove's. A [*ValueError] has it.
	ErrValue = driver.ErrValue
	// ErrDetached is what Lease.Err returns after Detach, and the cause of its context's
	// end.
	ErrDetached = errors.New("pawl: lease detached")
	// ErrStale means that a transaction must not commit: the lease that it depends on
	// does not hold the name any more. CheckLease of the SQL backends returns it.
	ErrStale = driver.ErrStale
)

// HeldError answers a claim that was not granted. It matches ErrHeld. Its fields:
//
//   - Name is what was claimed.
//   - Holders is how many hold the name, and Holder is the one of them whose lease ends
//     first, with its fence and the time that it has left. [Client.Inspect] has them all.
//   - Position is the claim's place in the queue: 1 is next, 0 means that it does not
//     queue.
//   - ClosedFor is how much longer nothing will be granted, after a break or an expiry.
//   - RetryAfter is how long to wait until asking again may be worth it: a holder expires
//     by then, the name opens, or a dead waiter loses its place; 0 means that this is not
//     known. A release may free the name sooner.
//   - Fence is the last fence granted on the name by then.
//   - Local means that, as far as is known, only this client holds the name or waits for
//     it.
type HeldError = driver.HeldError

// ValueError answers a claim that was not granted, because the name keeps a value that is
// not smaller than its [WithAbove]. It matches ErrValue. Its fields are the Name, the
// Value that it keeps, and the Fence of the lease that wrote it.
type ValueError = driver.ValueError

// InvalidError refuses input before anything is sent. It matches ErrInvalid. Its fields
// are What ("name", "TTL"), Problem (what is wrong with it) and Allowed (what would be
// right).
type InvalidError = driver.InvalidError

// BackendError says that the backend failed. It matches ErrUnavailable. Its fields:
//
//   - Backend is which one, and where it is, never with a password: "redis
//     10.0.0.7:6379".
//   - Op is what was asked of it: OpAcquire, OpRenew, ...
//   - Name is the name that it was about, or empty.
//   - Hint says what to do about it, or is empty.
//   - Permanent means that asking again will not help: a wrong password, or no database.
//   - Err is the backend's own error.
type BackendError = driver.Error

// Op is what was asked of a backend: of a [BackendError], and of a [FailedEvent].
type Op = driver.Op

// What clients ask. A backend may have more of its own.
const (
	OpOpen     = driver.OpOpen
	OpAcquire  = driver.OpAcquire
	OpRenew    = driver.OpRenew
	OpRelease  = driver.OpRelease
	OpBreak    = driver.OpBreak
	OpRead     = driver.OpRead // one name: Inspect, Watch, WaitFree, Leader
	OpList     = driver.OpList
	OpDiagnose = driver.OpDiagnose
	OpClose    = driver.OpClose
)

// Reason says why a lease was lost.
type Reason int

const (
	ReasonExpired     Reason = iota + 1 // it was not renewed in time, or the backend forgot it
	ReasonUnreachable                   // it was not renewed in time, as the backend did not answer
	ReasonBroken                        // somebody broke it, or took it by force
	ReasonMaxHold                       // it was held as long as WithMaxHold allows
	ReasonClosed                        // the client was closed
	ReasonUnhealthy                     // its WithHealth function said that it must end
)

func (r Reason) String() string {
	switch r {
	case ReasonExpired:
		return "expired"
	case ReasonUnreachable:
		return "backend unreachable"
	case ReasonBroken:
		return "broken"
	case ReasonMaxHold:
		return "maximum hold time reached"
	case ReasonClosed:
		return "client closed"
	case ReasonUnhealthy:
		return "unhealthy"
	}
	return fmt.Sprintf("Reason(%d)", int(r))
}

// LostError says that a lease ended without a release. It matches ErrLost.
type LostError struct {
	Name   string
	Fence  uint64
	Reason Reason
	By     Owner // with ReasonBroken, if the backend knows

	// Until is when the work must have stopped, on this process's clock: nobody else is
	// granted the name before it. It may be over already, after a forced claim or a pause
	// of the process.
	Until time.Time

	// Finished is set by Do and TryDo when the function had returned nil: its work is
	// done, and others may have run beside it. Doing it again does it twice.
	Finished bool

	// Err is the backend's last error, with ReasonUnreachable; what WithHealth's function
	// returned, with ReasonUnhealthy; where a handle was made that Attach took elsewhere,
	// with ReasonExpired; or nil. It matches no error of a ctx, because none of the
	// caller's has ended.
	Err error
}

// Is makes errors.Is(err, ErrLost) true, and ErrClosed when that is the reason.
func (e *LostError) Is(target error) bool {
	return target == ErrLost || target == ErrClosed && e.Reason == ReasonClosed
}

// Unwrap gives Err.
func (e *LostError) Unwrap() error { return e.Err }

func (e *LostError) Error() string {
	s := fmt.Sprintf("pawl: lost %q (fence %d): %v", e.Name, e.Fence, e.Reason)
	if e.Reason == ReasonBroken && (e.By.Client != "" || e.By.Host != "") {
		s += " by " + e.By.String()
	}
	if e.Err != nil {
		s += ": " + bare(e.Err)
	}
	if e.Finished {
		s += "; its work had finished, and others may have worked beside it"
	}
	return s
}

// notHeld is the loss that the backend told us of, in answer to a request sent then.
func notHeld(sent time.Time, err error) LostError {
	lost := LostError{Reason: ReasonExpired, Until: sent}
	if broken, ok := errors.AsType[*driver.BrokenError](err); ok {
		// It stays closed for ClosedFor after it handled our request, which was later
		// than we sent it.
		lost.Reason, lost.By, lost.Until = ReasonBroken, broken.By, sent.Add(broken.ClosedFor)
	}
	return lost
}

// CloseError says that Close ended before the backend had confirmed that everything was
// released.
type CloseError struct {
	// Unreleased counts leases that were not confirmed as released, and claims that may
	// have been granted. They end by themselves: a lease after its TTL.
	Unreleased int
	// Err is why Close waited no longer: its ctx's error and the backend's last one, or
	// an error that matches ErrUnavailable.
	Err error
}

// Unwrap gives the reason.
func (e *CloseError) Unwrap() error { return e.Err }

func (e *CloseError) Error() string {
	what := "1 lock was"
	if e.Unreleased != 1 {
		what = fmt.Sprintf("%d locks were", e.Unreleased)
	}
	return "pawl: closed, but " + what + " not released and will expire: " + bare(e.Err)
}

// errNotMade is said of what no constructor has made: a zero value, or a nil pointer.
var errNotMade = &InvalidError{What: "client", Problem: "is missing", Allowed: "one of Open or New, and locks that it makes"}

// errNoContext is said of a ctx that is nil.
var errNoContext = &InvalidError{What: "ctx", Problem: "is nil", Allowed: "a context"}

// errNoFunction is said before anything is claimed: calling it would be a panic under the
// lock, and spend a tick of a [Once] for nothing.
var errNoFunction = &InvalidError{What: "f", Problem: "is nil", Allowed: "a function"}

var errNoLease = &InvalidError{What: "lease", Problem: "is nil", Allowed: "one that was granted"}

// bare is an error inside another: "pawl: " is said once.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "pawl: ") }

// endedError is the error of a ctx that ended, and what stood in the way until then.
type endedError struct {
	ctx error
	why error
}

func (e *endedError) Unwrap() []error { return []error{e.ctx, e.why} }

func (e *endedError) Error() string { return e.ctx.Error() + ": " + bare(e.why) }

// waitError ends a wait whose ctx ended. It matches the ctx's error, and also what stood
// in the way, if that is known: ErrHeld or ErrUnavailable.
type waitError struct {
	name string
	endedError
}

func (e *waitError) Error() string {
	return fmt.Sprintf("pawl: gave up waiting for %q: %v", e.name, &e.endedError)
}

// gaveUp is the error of a wait that ctx ended. Cancelling is the caller's own decision
// and is answered with ctx's error as it is; a deadline is an answer about the lock, and
// says what it was.
func gaveUp(ctx context.Context, name string, why error) error {
	err := ended(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || why == nil {
		return err
	}
	return &waitError{name, endedError{err, why}}
}

// ended is ctx.Err, and right also in the instant in which the deadline has passed and
// ctx's timer has not fired: what a driver waits with, a socket's deadline say, may be
// quicker.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if deadline, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(deadline) {
		err = context.DeadlineExceeded
	}
	return err
}

var errNoAnswer = errors.New("no answer in time")

// unavailable makes sure that a failure of the backend matches ErrUnavailable, whatever
// the driver returned.
func unavailable(backend string, op Op, name string, err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrInvalid) {
		return err
	}
	err = notOfTheCaller(err)
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return &driver.Error{Backend: backend, Op: op, Name: name, Err: err, Hint: "check the server and the network"}
}

// notOfTheCaller is an error that matches no error of a ctx: none of the caller's ended.
func notOfTheCaller(err error) error {
	if err == context.DeadlineExceeded { //nolint:errorlint // it has nothing else to say
		return errNoAnswer
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &attemptError{err}
	}
	return err
}

// attemptError is an error of the backend that came of an attempt's end. The deadline was
// ours, of one attempt: nobody shall take it for that of the caller's ctx. All else in it
// is there to be found.
type attemptError struct{ err error }

func (e *attemptError) Error() string { return e.err.Error() }

func (e *attemptError) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.err, target)
}

func (e *attemptError) As(target any) bool { return errors.As(e.err, target) }

// permanent reports whether the backend said that asking again will not help.
func permanent(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Permanent
}
