package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// The errors to branch on with errors.Is. Most come with details for errors.As, in the
// types that the comments name.
var (
	// ErrHeld means that the lock was not granted, because others hold it or wait for it.
	// A [*HeldError] names one of them.
	ErrHeld = driver.ErrHeld
	// ErrLost means that the lease ended without a release. A [*LostError] says why.
	ErrLost = errors.New("pawl: lock lost")
	// ErrReleased is the error that Lease.Err returns after a release, and the cause of
	// the end of the lease's context.
	ErrReleased = errors.New("pawl: lock released")
	// ErrUnavailable means that a request to the backend failed, or was not answered. A
	// [*BackendError] says which, and wraps the backend's own error.
	ErrUnavailable = driver.ErrUnavailable
	// ErrClosed means that the client is closed.
	ErrClosed = driver.ErrClosed
	// ErrInvalid means that the input was refused before anything was sent. An
	// [*InvalidError] says what is allowed.
	ErrInvalid = driver.ErrInvalid
	// ErrNoSuchLease means that no lease has the fence that Break was given.
	ErrNoSuchLease = driver.ErrNoSuchLease
	// ErrValueNotBelow means that the lock was not granted, because the name keeps a
	// value that is not smaller than the value of WithValueBelow. A [*ValueNotBelowError]
	// has the value.
	ErrValueNotBelow = driver.ErrValueNotBelow
	// ErrDetached is the error that Lease.Err returns after Detach, and the cause of the
	// end of the lease's context.
	ErrDetached = errors.New("pawl: lease detached")
	// ErrStale means that a transaction must not commit: the lease that it depends on
	// does not hold the name any more. CheckLease of postgreslock, mysqllock and
	// sqlitelock returns it.
	ErrStale = driver.ErrStale
)

// HeldError answers a claim that was not granted. It matches ErrHeld. Its fields:
//
//   - Name is the name that was claimed.
//   - Holders is the number of leases that hold the name, and Holder the one of
//     them that ends first. It may be of this client: compare Holder.Owner.Client
//     with the one of [Client.Self]. [Client.Inspect] returns all.
//   - Position is the claim's place in the queue: 1 is next, 0 means that it does
//     not queue.
//   - ClosedFor is the time for which the backend still grants nothing, after a break
//     or an expiry.
//   - RetryAfter is the time after which another attempt makes sense: until a lease
//     expires, the name opens, or a dead waiter loses its place. 0 means that it is not
//     known. A release may free the name sooner.
//   - Fence is the last fence granted on the name before this answer.
type HeldError = driver.HeldError

// ValueNotBelowError answers a claim that was not granted, because the name keeps a value
// that is not smaller than the value of [WithValueBelow]. It matches ErrValueNotBelow.
// Its fields are the Name, the Value that the name keeps, and the Fence of the lease that
// wrote it.
type ValueNotBelowError = driver.ValueNotBelowError

// InvalidError refuses input before anything is sent. It matches ErrInvalid. Its fields
// are Argument ("name", "TTL"), Problem ("is empty") and Allowed ("1 to 255 bytes").
type InvalidError = driver.InvalidError

// BackendError says that a request to the backend failed. It matches ErrUnavailable. Its
// fields:
//
//   - Backend names the backend and its location, never with a password: "redis
//     10.0.0.7:6379".
//   - Op is the request: OpAcquire, OpRenew, ...
//   - Name is the name that the request was about, or empty.
//   - Hint says what to do about the failure, or is empty.
//   - Permanent means that a retry will not help: a wrong password, or no database.
//   - Err is the backend's own error.
type BackendError = driver.Error

// Op is a request to a backend, in a [BackendError] and a [FailedEvent].
type Op = driver.Op

// The requests of clients. A backend may have more of its own.
const (
	OpOpen     = driver.OpOpen
	OpAcquire  = driver.OpAcquire
	OpRenew    = driver.OpRenew
	OpRelease  = driver.OpRelease
	OpBreak    = driver.OpBreak
	OpRead     = driver.OpRead // one name: Inspect, Watch, WaitUntilFree, Leader
	OpList     = driver.OpList
	OpDiagnose = driver.OpDiagnose
	OpClose    = driver.OpClose
)

// Reason says why a lease was lost.
type Reason int

// The reasons.
const (
	ReasonExpired     Reason = iota + 1 // the lease was not renewed in time, or the backend forgot it
	ReasonUnreachable                   // the lease was not renewed in time, because the backend did not answer
	ReasonBroken                        // an operator broke the lease, or another client took the name by force
	ReasonMaxHold                       // the lease was held as long as WithMaxHold allows
	ReasonClosed                        // the client was closed
	ReasonUnhealthy                     // the lease's WithHealth function returned an error, or did not return
)

var reasons = map[Reason]string{
	ReasonExpired: "expired", ReasonUnreachable: "backend unreachable", ReasonBroken: "broken",
	ReasonMaxHold: "maximum hold time reached", ReasonClosed: "client closed", ReasonUnhealthy: "unhealthy",
}

func (r Reason) String() string { return cmp.Or(reasons[r], fmt.Sprintf("Reason(%d)", int(r))) }

// LostError says that a lease ended without a release. It matches ErrLost.
type LostError struct {
	Name   string // as it is stored: see [Lease.StoredName]
	Fence  uint64 // the fence of the lost lease
	Reason Reason
	By     Owner // the client that broke the lease or took the name, with ReasonBroken, if the backend knows

	// StopBy is the time by which the work must have stopped, on this process's clock.
	// The backend grants the name to no other client before StopBy. After a forced claim
	// or a pause of the process, StopBy may be in the past.
	StopBy time.Time

	// Finished means that the function of Do or TryDo returned nil: its work is done, and
	// repeating it does it twice. It does not mean that the function ran alone: other
	// holders may have run at the same time, unless it returned before StopBy, or its
	// transaction passed CheckLease.
	Finished bool

	// With ReasonUnreachable, Err is the backend's last error. With ReasonUnhealthy, it
	// is the error of WithHealth's function. If Attach returns ReasonExpired, and the
	// handle was made on another backend, Err names that backend. Otherwise it is nil. It
	// matches no error of a ctx, because no ctx of the caller has ended.
	Err error
}

// Is makes errors.Is(err, ErrLost) true, and errors.Is(err, ErrClosed) with ReasonClosed.
func (e *LostError) Is(target error) bool {
	return target == ErrLost || target == ErrClosed && e.Reason == ReasonClosed
}

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

func (e *LostError) Error() string {
	s := fmt.Sprintf("pawl: lost %q (fence %d): %v", e.Name, e.Fence, e.Reason)
	if e.Reason == ReasonBroken && (e.By.Client != "" || e.By.Host != "") {
		s += " by " + e.By.String()
	}
	if e.Err != nil {
		s += ": " + withoutPrefix(e.Err)
	}
	if e.Finished {
		s += "; its work had finished, and others may have worked beside it"
	}
	return s
}

// reportedLoss returns the loss that the backend reported when it answered a request.
func reportedLoss(sent time.Time, err error) LostError {
	lost := LostError{Reason: ReasonExpired, StopBy: sent}
	if broken, ok := errors.AsType[*driver.BrokenError](err); ok {
		// ClosedFor counts from the moment at which the backend handled our request. That
		// is later than sent, so sent plus ClosedFor is early enough.
		lost.Reason, lost.By, lost.StopBy = ReasonBroken, broken.By, sent.Add(broken.ClosedFor)
	}
	return lost
}

// CloseError says that Close or Shutdown ended before the backend had confirmed every
// release.
type CloseError struct {
	// Unreleased counts the leases whose release the backend did not confirm, and the
	// claims that it may have granted. These leases expire after their TTL.
	Unreleased int
	// Err is the reason for which the wait ended: the error of Shutdown's ctx and the
	// backend's last error, or an error that matches ErrUnavailable.
	Err error
}

// Unwrap returns Err.
func (e *CloseError) Unwrap() error { return e.Err }

func (e *CloseError) Error() string {
	s := "pawl: closed, but " + countWas(e.Unreleased, "lock") + " not released and will expire"
	if e.Err != nil {
		s += ": " + withoutPrefix(e.Err)
	}
	return s
}

// countWas returns "1 lock was", "2 locks were", and so on.
func countWas(n int, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return fmt.Sprintf("%d %ss were", n, what)
}

func invalid(what, problem, allowed string) error {
	return &InvalidError{Argument: what, Problem: problem, Allowed: allowed}
}

// errNotMade is the error of a client or lock that is a zero value, or a nil pointer.
var errNotMade = invalid("client", "is missing", "one of Open or New, and locks that it makes")

var errNoContext = invalid("ctx", "is nil", "a context")

// errNoFunction is the error for a nil function. Do returns it before it claims anything,
// because calling nil would panic under the lock, and use up a tick of a [Once].
var errNoFunction = invalid("f", "is nil", "a function")

var errNoLease = invalid("lease", "is nil", "one that was granted")

// withoutPrefix returns the text of err without "pawl: ", for the text of another error.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), "pawl: ") }

// endedError is the error of a ctx that ended, with the error of the last attempt.
type endedError struct {
	ctxErr  error
	lastErr error
}

func (e *endedError) Unwrap() []error { return []error{e.ctxErr, e.lastErr} }

func (e *endedError) Error() string { return e.ctxErr.Error() + ": " + withoutPrefix(e.lastErr) }

// waitError is the error of a wait that the deadline of ctx ended. It matches the ctx's
// error, and also the error of the last attempt: ErrHeld or ErrUnavailable.
type waitError struct {
	name string
	endedError
}

func (e *waitError) Error() string {
	return fmt.Sprintf("pawl: gave up waiting for %q: %v", e.name, &e.endedError)
}

// gaveUp returns the error of a wait that ctx ended. If the caller cancelled ctx, it is
// ctx's error alone. If a deadline passed, it also wraps lastErr, the error of the last
// attempt.
func gaveUp(ctx context.Context, name string, lastErr error) error {
	err := ctxErr(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || lastErr == nil {
		return err
	}
	return &waitError{name, endedError{err, lastErr}}
}

// timerLagMax is the longest time for which ctxErr waits for the timer of a ctx. The
// timer of a deadline without a monotonic reading fires later if the clock was set
// forward meanwhile.
const timerLagMax = time.Second

// ctxErr returns ctx.Err. If ctx's deadline has passed, ctxErr first waits for ctx's
// timer. A driver may return before that timer fires, because a socket's deadline may
// fire earlier. Callers branch on ctx.Err, so Pawl must not return an error that matches
// ctx's while ctx.Err is nil.
func ctxErr(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
		case <-time.After(timerLagMax):
		}
	}
	return ctx.Err()
}

// isEndOf reports whether err means that ctx has ended, and not a deadline of the
// driver's own.
func isEndOf(ctx context.Context, err error) bool {
	isEnd := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	return isEnd && ctxErr(ctx) != nil && errors.Is(err, ctx.Err())
}

var errNoAnswer = errors.New("no answer in time")

// unavailable returns err, a failure of the backend, as an error that matches
// ErrUnavailable. It returns ErrClosed and ErrInvalid as they are.
func unavailable(backend string, op Op, name string, err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrInvalid) {
		return err
	}
	err = withoutCtxMatch(err)
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return &driver.Error{Backend: backend, Op: op, Name: name, Err: err, Hint: "check the server and the network"}
}

// withoutCtxMatch returns err as an error that matches no error of a ctx, because the
// caller's ctx has not ended.
func withoutCtxMatch(err error) error {
	if err == context.DeadlineExceeded { //nolint:errorlint // a wrapped one has more text, see below
		return errNoAnswer
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &attemptError{err}
	}
	return err
}

// attemptError is an error of the backend that the deadline of one attempt caused. The
// client set that deadline, so the error must not match the end of the caller's ctx. The
// error matches everything else in err.
type attemptError struct{ err error }

func (e *attemptError) Error() string { return e.err.Error() }

func (e *attemptError) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.err, target)
}

func (e *attemptError) As(target any) bool { return errors.As(e.err, target) }

// isPermanent reports whether the backend said that a retry will not help.
func isPermanent(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Permanent
}
