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
	rowChanged  = 1020 // innodb_snapshot_isolation: the row has changed since the first read
	noSuchTable = 1146
	lockTimeout = 1205
	deadlock    = 1213
	overflow    = 1690 // a number is out of range, see insertStatement
)

func errNumber(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

func hasNumber(err error, numbers ...uint16) bool { return slices.Contains(numbers, errNumber(err)) }

// isDeadlock reports whether the server aborted a statement because of a concurrent one.
func isDeadlock(err error) bool { return hasNumber(err, deadlock, rowChanged) }

func isLocked(err error) bool { return hasNumber(err, lockTimeout) }

// isRetryable reports whether a statement changed nothing because of concurrent ones.
func isRetryable(err error) bool { return isDeadlock(err) || isLocked(err) }

// isUnprepared reports whether a statement failed because it is not prepared: the server
// has too many prepared statements, or a proxy has lost this one.
func isUnprepared(err error) bool { return hasNumber(err, 1243, 1461, 1615) }

// isReadOnly reports whether a server takes no writes, usually because it is no longer
// the primary.
func isReadOnly(err error) bool { return hasNumber(err, 1290, 1792, 1836) }

// isServerUsable reports whether the server stays usable after an error. It returns false
// if the network failed, or the server shuts down or takes no writes. It returns true if
// the caller gave up.
func isServerUsable(ctx context.Context, err error) bool {
	return isCtxErr(ctx, err) || !hasNumber(err, 0, 1053, 1927) && !isReadOnly(err)
}

// isCtxErr reports whether an error means that the caller's own ctx has ended. Other
// timeouts, such as a slow dial, also match context.DeadlineExceeded.
func isCtxErr(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// driverError converts an error to a *driver.Error with advice. It returns the error of
// the caller's ctx unchanged, unless the reason for the delay is known: an exhausted
// pool, or cause, the error after which the driver repeated the statement.
func (s *server) driverError(ctx context.Context, err, cause error) error {
	if isCtxErr(ctx, err) {
		stats := s.db.Stats()
		switch {
		case cause != nil:
			err = fmt.Errorf("%w (%w)", err, cause)
		case stats.MaxOpenConnections > 0 && stats.InUse >= stats.MaxOpenConnections:
			return &driver.Error{
				Backend: s.Location, Op: "use", Err: fmt.Errorf("%w, with all %d connections of the pool in use", err, stats.InUse),
				Hint: "find the code that keeps them, or give locks a larger pool, or one of their own",
			}
		default:
			return err
		}
	}
	return engine.Failure(err, s.Location, "use", s.advice)
}

func (s *server) advice(err error) (hint string, permanent bool) {
	if _, corrupt := errors.AsType[*locktable.CorruptError](err); corrupt {
		return "this name cannot be locked until its row in " + s.namesTable + " is repaired, or deleted while no client holds it", true
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return s.adviceFor(e.Number)
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return "the server has no TLS: leave out tls, or set tls=preferred", true
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
		return "create the database first: CREATE DATABASE ...", true
	case 1142, 1143, 1227:
		return "the user needs SELECT, INSERT, UPDATE and DELETE on " + s.namesTable + " and " + s.lostTable +
			"; if it may not CREATE tables, an administrator creates them first: " + s.command(), true
	case noSuchTable:
		return "create the tables first: " + s.command() + "; or leave out create=false", true
	case 1054, 1136, 1364, 1406, 1264, 1366:
		return s.namesTable + " differs from what `" + s.command() + "` creates: it may belong to another application or version", true
	case 1290, 1792, 1836: // see isReadOnly
		return "the server is read-only: a replica, or one that was demoted; give the address of the primary", false
	case 1047:
		return "a node of Galera without a majority takes no statements: look at wsrep_cluster_status, or give the address of another node", false
	case 1021, 1030, 1114, 3, 28:
		return "the disk, or the tablespace, is full: leases end by themselves, new ones need some free space", false
	case 1040, 1203, 1226:
		return "the server has no connection left for this user: look at max_connections, and find the clients that hold them", false
	case lockTimeout:
		return "another session keeps the row locked, for example a transaction with CheckLease that does not end, an open client, or a commit that hangs (a backup, a full disk, a replica)", false
	case 1153:
		return tooBigHint, true
	case 1969, 3024:
		return "a time limit for statements ended it: raise max_statement_time for this user, to 5 s or more", false
	case 1665:
		return "with binlog_format=STATEMENT a replica cannot repeat statements that depend on the clock: set MIXED or ROW", true
	}
	return "", false
}
