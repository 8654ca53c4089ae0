package redisscript

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// wrapErr adds the backend, the step and the name to an error of the client, and a hint
// if an operator can help. It returns ErrClosed, and the end of the caller's own ctx,
// unchanged.
func (d *Driver) wrapErr(ctx context.Context, op driver.Op, name string, err error) error {
	if d.closed.Load() || errors.Is(err, driver.ErrClosed) {
		return driver.ErrClosed
	}
	// The deadline of ctx, or the library's deadline on the connection, may have ended
	// the request.
	isDeadline := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if ended := ctxErr(ctx); ended != nil && (isDeadline || errors.Is(err, ended)) {
		return ended
	}
	return DriverError(d.backend, op, name, err)
}

// ctxErr returns ctx.Err(), but compares the deadline with the clock, because the timer
// of ctx may fire late.
func ctxErr(ctx context.Context) error { return ctxErrAt(ctx, time.Now()) }

// ctxErrAt is ctxErr for a caller that has just read the clock, because reading the clock
// costs as much as a mutex.
func ctxErrAt(ctx context.Context, now time.Time) error {
	select {
	case <-lazyctx.CallerDone(ctx):
		return giveUpErr(ctx)
	default:
	}
	if deadline, ok := ctx.Deadline(); ok && !now.Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// giveUpErr returns the error of a caller that has given up, according to
// lazyctx.CallerDone. It never returns nil, even if ctx, which is derived from the
// caller's context, is not cancelled yet.
func giveUpErr(ctx context.Context) error { return cmp.Or(ctx.Err(), context.Canceled) }

func (d *Driver) ready(ctx context.Context) error { return d.readyAt(ctx, time.Now()) }

func (d *Driver) readyAt(ctx context.Context, now time.Time) error {
	if d.closed.Load() {
		return driver.ErrClosed
	}
	return ctxErrAt(ctx, now)
}

// isConnectionLost reports whether an error means that the connection was lost: the
// server has closed it, or could not be reached.
func isConnectionLost(err error) bool {
	lostErrs := []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED}
	return slices.ContainsFunc(lostErrs, func(lostErr error) bool { return errors.Is(err, lostErr) })
}

// DriverError makes a *driver.Error of an error of a client library.
func DriverError(backend string, op driver.Op, name string, err error) error {
	hint, permanent := advice(err)
	return &driver.Error{Backend: backend, Op: op, Name: name, Hint: hint, Permanent: permanent, Err: err}
}

var hints = engine.Hints{
	{"PAWLDAMAGED", true, damagedHint},
	{"PAWLMISSING", false, missingHint},
	{"data string too short", true, damagedHint},
	{"the stored entry is damaged", true, damagedHint},
	{"PAWLFENCE", true, "another node's clock, or fence, is far in the future"},
	{"WRONGTYPE", true, foreignHint},
	{"DB index is out of range", true, "the server has fewer databases (16 by default): CONFIG GET databases"},
	{"invalid DB index", true, "the server has fewer databases (16 by default): CONFIG GET databases"}, // up to Redis 5
	{"NOAUTH", true, "the server requires a password: redis://USER:PASSWORD@HOST"},
	{"WRONGPASS", true, "the user or the password is wrong"},
	{"invalid password", true, "the password is wrong"}, // Redis 5
	{"without any password configured", true, "the server has no password: leave it out of the URL"},
	{"NOPERM", true, "the user may not do this: https://github.com/pawl-go/pawl/blob/main/docs/backends/redis.md has the ACL that is needed"},
	{"can't run this command or subcommand", true, "the user may not do this: https://github.com/pawl-go/pawl/blob/main/docs/backends/redis.md has the ACL that is needed"},
	{"can't access", true, "the user may not use Pawl's keys: https://github.com/pawl-go/pawl/blob/main/docs/backends/redis.md has the ACL that is needed"},
	{"READONLY", false, "this is a replica: use the master's address, or the Sentinels' and the name of the master"},
	{"LOADING", false, "the server is reading its data from the disk, and will answer when it is done"},
	{"MASTERDOWN", false, "this is a replica that has lost its master"},
	{"OOM", false, "the server's memory is full (maxmemory): leases can be renewed and released, but no new lease is granted"},
	{"MISCONF", false, "the server cannot save its data, and refuses to write: look at its disk and its log"},
	{"released again: acknowledged by", false, "look at the replicas, or wait for fewer of them, or longer (wait_replicas, wait_timeout)"},
	{"NOREPLICAS", false, "fewer replicas are connected than min-replicas-to-write requires"},
	{"CLUSTERDOWN", false, "the cluster has lost nodes, or slots without a node: redis-cli --cluster check"},
	{"MOVED", true, "this is a node of a cluster: give its address to a cluster client (a URL with several hosts, or ?cluster=true)"},
	{"TRYAGAIN", false, "the slot of the name is being moved"},
	{"BUSY", false, "another script has been running for a long time: SCRIPT KILL ends it if it has written nothing"},
	{"connection pool timeout", false, "give locks a client of their own, or a larger PoolSize"}, // go-redis
	{"max number of clients", false, "the server has as many connections as its maxclients allows"},
	{"Unknown Redis command called", true, "the server, or a proxy in front of it, lacks a command that Pawl's scripts need, or has renamed it: pawl doctor names it"},
	{"unknown command", true, "the server, or a proxy in front of it, lacks a command: Redis 6.2 or later is needed"},
	{"Wrong number of args calling Redis command", true, "Redis 6.2 or later is needed"},
	{"x509:", false, "this machine does not trust the server's certificate for that host"},
	{"first record does not look like a TLS handshake", true, "the server does not use TLS on this port: use redis://, not rediss://"},
	{"deadline exceeded", false, "the server does not answer in time: check the network, and use rediss:// if and only if the server uses TLS"},
	{"i/o timeout", false, "the server does not answer in time: check the network, and use rediss:// if and only if the server uses TLS"},
	{"connection refused", false, "no server listens there: is it up, and is the port right?"},
	{"no such host", false, "the host is not known"},
}

// isDamage reports whether an error is about the stored data of one name.
func isDamage(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && (e.Hint == damagedHint || e.Hint == foreignHint || e.Hint == missingHint)
}

const foreignHint = "another program has written to one of Pawl's keys: give one of the two another prefix"

const missingHint = "keys of this name were deleted, perhaps by the server because its memory is full: pawl doctor"

const damagedHint = "this name cannot be locked until its keys are deleted, while no client holds it: " +
	"DEL PREFIX{NAME}s PREFIX{NAME}d PREFIX{NAME}l PREFIX{NAME}e"

func advice(err error) (hint string, permanent bool) {
	if d, ok := errors.AsType[*damage](err); ok {
		return damagedHint, d != nil
	}
	if hint := engine.CertificateHint(err); hint != "" {
		return hint, false
	}
	return hints.Advice(err)
}
