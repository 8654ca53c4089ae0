package mysqllock

import (
	sqldriver "database/sql/driver"

	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// The error numbers of the servers that the driver knows.
const (
	hasChanged  = 1020 // innodb_snapshot_isolation: the row has changed since the first read
	noSuchTable = 1146
	lockTimeout = 1205
	deadlock    = 1213
	overflow    = 1690
)

func number(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

func hasNumber(err error, numbers ...uint16) bool { return slices.Contains(numbers, number(err)) }

// isDeadlock reports whether the server aborted a statement because of a concurrent one.
func isDeadlock(err error) bool { return hasNumber(err, deadlock, hasChanged) }

func isLocked(err error) bool { return hasNumber(err, lockTimeout) }

// retryable reports whether a statement changed nothing because of concurrent ones.
func retryable(err error) bool { return isDeadlock(err) || isLocked(err) }

// unprepared reports whether a statement failed because it is not prepared: the server
// has too many prepared statements, or a proxy has lost this one.
func unprepared(err error) bool { return hasNumber(err, 1243, 1461, 1615) }

// readOnly reports whether a server takes no writes, usually because it is no longer the
// primary.
func readOnly(err error) bool { return hasNumber(err, 1290, 1792, 1836) }

// answered reports whether the server stays usable after an error. It returns false if
// the network failed, or the server shuts down or takes no writes. It returns true if the
// caller gave up.
func answered(ctx context.Context, err error) bool {
	return isOver(ctx, err) || !hasNumber(err, 0, 1053, 1927) && !readOnly(err)
}

// isOver reports whether an error means that the caller's own ctx has ended. Other
// timeouts, such as a slow dial, also match context.DeadlineExceeded.
func isOver(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// driverError makes a driver.Error, with advice, of an error. It returns the error of the
// caller's ctx unchanged, unless the cause of the delay is known: an exhausted pool, or
// before, the error after which the driver repeated the statement.
func (s *server) driverError(ctx context.Context, err, before error) error {
	if isOver(ctx, err) {
		pool := s.db.Stats()
		switch {
		case before != nil:
			err = fmt.Errorf("%w (%w)", err, before)
		case pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections:
			return &driver.Error{
				Backend: s.Location, Op: "use", Err: fmt.Errorf("%w, with all %d connections of the pool in use", err, pool.InUse),
				Hint: "look for what keeps them, or give locks a larger pool, or one of their own",
			}
		default:
			return err
		}
	}
	return engine.Failure(err, s.Location, "use", s.advice)
}

func (s *server) advice(err error) (hint string, permanent bool) {
	if _, corrupt := errors.AsType[*locktable.CorruptError](err); corrupt {
		return "this name cannot be locked until its row in " + s.names + " is repaired, or deleted while no client holds it", true
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return s.adviceFor(e.Number)
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return "the server has no TLS: leave out tls, or say tls=preferred", true
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return "check ca_cert and server_name in the URL, and the server's certificate", false
	}
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, io.EOF) {
		return "check the server and the network", false
	}
	return "", false
}

const tooBigHint = "too many hold or wait for one name: raise max_allowed_packet, and maxAllowedPacket of the URL if it has that"

func (s *server) adviceFor(number uint16) (hint string, permanent bool) {
	switch number {
	case 1044, 1045, 1698:
		return "look at user, password and host, and at the rights on this database", true
	case 1049:
		return "make the database first: CREATE DATABASE ...", true
	case 1142, 1143, 1227:
		return "the user needs SELECT, INSERT, UPDATE and DELETE on " + s.names + " and " + s.lost +
			"; who may not CREATE tables has them made beforehand: " + s.command(), true
	case noSuchTable:
		return "make the tables beforehand: " + s.command() + "; or leave out create=false", true
	case 1054, 1136, 1364, 1406, 1264, 1366:
		return s.names + " is not as `" + s.command() + "` makes it: is it another application's, or of another version?", true
	case 1290, 1792, 1836: // see readOnly
		return "the server is read-only: a replica, or one that was demoted; give the address of the primary", false
	case 1047:
		return "a node of Galera without a majority takes no statements: look at wsrep_cluster_status, or give the address of another node", false
	case 1021, 1030, 1114, 3, 28:
		return "the disk, or the tablespace, is full: leases end by themselves, new ones need some free space", false
	case 1040, 1203, 1226:
		return "the server has no connection left for this user: look at max_connections, and at who holds them", false
	case lockTimeout:
		return "another session keeps the row locked: a transaction that called CheckLease and does not end, an open client, or a commit that hangs (a backup, a full disk, a replica)?", false
	case 1153:
		return tooBigHint, true
	case 1969, 3024:
		return "a limit on the time of statements ended it: raise max_statement_time for this user, to 5 s or more", false
	case 1665:
		return "with binlog_format=STATEMENT a replica could not repeat what depends on the clock: set MIXED or ROW", true
	}
	return "", false
}
