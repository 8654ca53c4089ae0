package postgreslock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable/swap"
)

// sqlState returns the code of a server's error, from any client library.
func sqlState(err error) string {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState()
	}
	return ""
}

// isRetryable reports whether to repeat a statement: the server aborted it because of a
// deadlock, or, under a higher default isolation level, because its row had changed.
func isRetryable(err error) bool {
	state := sqlState(err)
	return state == "40001" || state == "40P01"
}

// isLocked reports whether a statement failed because its wait for a locked row reached
// the limit.
func isLocked(err error) bool { return sqlState(err) == "55P03" }

// statementError converts the error of a statement to a *driver.Error with advice.
func (s *server) statementError(err error) error {
	if isLocked(err) {
		err = fmt.Errorf("%w (%w)", swap.ErrLocked, err)
	}
	return s.opError("run", err)
}

func (s *server) opError(op driver.Op, err error) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = &connectError{err}
	}
	return engine.Failure(err, s.location(), op, s.advice)
}

// connectError shortens pgconn's error for people. pgconn writes one line for each
// attempt, even if several attempts failed in the same way. It also reports that the
// server refused TLS when the attempt without TLS failed for another reason.
type connectError struct{ err error }

func (e *connectError) Unwrap() error { return e.err }

func (e *connectError) Error() string {
	lines := strings.Split(e.err.Error(), "\n")
	first := strings.TrimSuffix(strings.TrimSpace(lines[0]), ":")
	var causes []string
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if line != "" && !slices.Contains(causes, line) {
			causes = append(causes, line)
		}
	}
	refused := func(line string) bool { return strings.HasSuffix(line, "server refused TLS connection") }
	if others := slices.DeleteFunc(slices.Clone(causes), refused); len(others) > 0 {
		causes = others
	}
	return strings.Join(append([]string{first}, causes...), "; ")
}

const replicaIdentityHint = "ALTER TABLE ... REPLICA IDENTITY DEFAULT, or leave the tables out of the publication"

func (s *server) advice(err error) (hint string, permanent bool) {
	if _, ok := errors.AsType[exhaustedError](err); ok {
		return "other code of this program uses all connections of the pool: give locks a pool of their own, or make it larger", false
	}
	state := sqlState(err)
	switch state {
	case "25006":
		return standbyHint, false // the standby may be promoted
	case "42703", "42P10":
		return "a table differs from what `" + s.options.command() + "` creates: look at the columns and the primary key", true
	case "3D000":
		return "the database does not exist: create it, or look at the URL", true
	case "28P01", "28000":
		return "look at the user, the password, and the server's pg_hba.conf", !s.passwordFromFile
	case "08P01": // PgBouncer uses it for its own errors and for unknown ones of the server
		if text := err.Error(); strings.Contains(text, "no such database") || strings.Contains(text, "database ") && strings.Contains(text, "does not exist") {
			return "the database does not exist behind the pooler: create it, or look at the URL and at [databases] in pgbouncer.ini", true
		}
	case "42501":
		return "the user lacks a right: as an administrator, run what `" + s.options.command() + "` prints, and grant the user" +
			" USAGE of the schema, and SELECT, INSERT, UPDATE, DELETE on its tables", true
	case "42P01", "3F000":
		return "a table is gone: run what `" + s.options.command() + "` prints, while no lock is held, and open the database again", true
	case "55000":
		if strings.Contains(err.Error(), "replica identity") {
			return replicaIdentityHint, true
		}
	case "42P05", "26000":
		return "a pooler in transaction mode: give the pool QueryExecModeCacheDescribe or QueryExecModeExec", true
	case "55P03", "25P03":
		return "another session keeps a row locked: look for an open transaction with a CheckLease, and for a client that was stopped", false
	case "53300":
		return "the server has no connection left: raise max_connections, or use smaller pools", false
	case "57P01", "57P02", "57P03":
		return "the server is starting, recovering or ending: look at its log", false
	case "53100", "53200":
		return "the server's disk or memory is full", false
	case "22P05":
		return "the database's encoding lacks a character: use UTF8, which has all", true
	case "":
		return "check the server and the network", false
	}
	return "", strings.HasPrefix(state, "42")
}
