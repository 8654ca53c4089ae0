// Package postgreslock keeps locks in a PostgreSQL database, version 12 or later, that is
// there already.
//
//	d, err := postgreslock.New(pool, nil) // a *pgxpool.Pool of yours, or NewDB with a *sql.DB
//	locks, err := pawl.New(d, nil)
//
// or, by URL, pawl.Open(ctx, "postgres://user:password@host/database", nil).
//
// # URLs
//
// The form is that of libpq and pgx: "postgres://" or "postgresql://", user and password,
// one host or several, the database, and the parameters that they know (sslmode,
// target_session_attrs, application_name, pool_max_conns, search_path, ...). PGHOST and
// the like, a passfile and a service file count, too. Our own parameters are:
//
//   - schema=NAME: see [Options.Schema]
//   - prefix=NAME: see [Options.Prefix]
//   - retention=DURATION: see [Options.Retention], as in "24h"
//   - push=false: see [Options.NoPush]
//
// A pool that is opened so has at most 16 connections, or pool_max_conns. Of several
// hosts it takes the one that can be written (target_session_attrs=read-write). A
// step waits for a row that a transaction keeps locked until its request is nearly over,
// 10 s at most, on a quarter of the connections at most. So lock_timeout is refused.
//
// # What has to be set up?
//
// Nothing, if the user may create a schema: the tables are made on first use. Else an
// administrator runs what "pawl schema postgres" prints, see [Schema], and grants the
// user USAGE of the schema, and SELECT, INSERT, UPDATE and DELETE on its tables. They are
// in a schema of their own, "pawl", and people can read them:
//
//	SELECT name, holders, fence, until FROM pawl.locks
//
// The column entry has the tokens of the holders. Whoever can read it, and write, can
// release what others hold.
//
// # What is guaranteed?
//
// A step is one row that changes in one transaction, by the clock of the server. What was
// granted is as durable as the server's commits: with synchronous_commit=on and fsync=on,
// the defaults, a crash of the server loses no grant. Giving a name back that nobody
// waits for does not wait for the disk: if it is lost, it is a lease that runs out. A
// failover to a standby that lags can lose the last grants, and so grant a name twice,
// unless the standby is synchronous; fences rise all the same as long as the clocks of
// both agree. With a synchronous standby open by URL: a pool of yours has the server
// cancel what its caller gave up, and PostgreSQL then commits what waits for the standby
// without it. A standby itself is refused. [Driver.Diagnose] looks at all that.
//
// Nobody is granted a name early: a step computes with a time that the server's clock has
// passed, and what begins lasts longer by as much as the server allows it to come later.
// When the server's clock is set back, leases last longer by as much; when it is set
// forward, they end early, and their holders hear of it by the next renewal.
//
// # How fast is it?
//
// An acquire or a release of a name that this client has seen is one statement and one
// commit: one round trip. Otherwise it is two. Renewals of many leases share one
// statement. Where several clients are at the same name, a step locks its row, and takes
// one round trip more. A name is handed over as soon as the next holder is notified.
//
// # How does a waiter hear that it is granted?
//
// By LISTEN, on one connection beside the pool, which is there only while a claim of this
// client waits or holds, or while it watches a name. If that connection is lost, it is
// made anew, and what has happened meanwhile is read from the table.
//
// A client that watches a name says so in its entry, for a minute at a time. Whoever
// changes the entry notifies it in the same statement; a name that nobody watches costs
// no notification.
//
// # What may sessions set?
//
// Anything: names travel as bytes of UTF-8, functions are called with their schema, and a
// step sets what it depends on. So clients whose roles, URLs or pools have another
// client_encoding, DateStyle, isolation level or search_path lock the same names, by the
// same clock. A session that may not write is refused.
//
// # What about PgBouncer?
//
// In statement mode it is refused. In transaction mode a connection that listens hears
// nothing. The driver finds that out by a notification to itself; then Properties.Push
// and PushesChanges are false, and waiting claims ask again, every 5 to 250 ms. A pool
// that is opened by URL behind a pooler keeps no prepared statements. Give a pool of your
// own pgx.QueryExecModeCacheDescribe or pgx.QueryExecModeExec there.
//
// # Can the work itself check the lock?
//
// If the work is in the same database: [Guard], in the transaction of the work.
package postgreslock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/sqltable"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Schema is where the tables are. It is made if it is missing. Applications with
	// different ones do not meet. Default: "pawl".
	Schema string

	// Prefix begins the names of the tables, for a schema that has others in it, as
	// "pawl_" does in "public".
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant.
	// When it is forgotten, the next fence is greater all the same, unless the clock was
	// set back past that grant. The name's value is forgotten then, too, so an instance
	// that is late by more than this runs a tick of pawl.Once again: keep it above the
	// longest delay. Default: 24 hours; at least a minute.
	Retention time.Duration

	// NoPush makes waiting claims ask again, instead of listening for signals. It saves a
	// connection.
	NoPush bool
}

// maxIdentifier is how long the name of a table can be, and of an index on it.
const maxIdentifier = 63 - len("waiters_name_token_key")

func (o *Options) withDefaults() (Options, error) {
	out := Options{}
	if o != nil {
		out = *o
	}
	if out.Schema == "" {
		out.Schema = "pawl"
	}
	if out.Retention == 0 {
		out.Retention = 24 * time.Hour
	}
	for what, name := range map[string]string{"schema": out.Schema, "prefix": out.Prefix} {
		if name == "" {
			continue
		}
		if err := driver.ValidateName(name); err != nil || len(name) > maxIdentifier {
			return out, &driver.InvalidError{What: what, Problem: "is no name for PostgreSQL", Allowed: fmt.Sprintf("up to %d bytes of UTF-8", maxIdentifier)}
		}
	}
	if out.Retention < time.Minute {
		return out, &driver.InvalidError{What: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	}
	return out, nil
}

// Driver is one client of a database. It implements driver.Driver, driver.Signaler,
// driver.Watcher, driver.Lister, driver.LeaseBreaker, driver.FenceRaiser,
// driver.AllAcquirer and driver.Diagnoser.
type Driver struct {
	*locktable.Driver
	server   *server
	listener *listener
	closed   atomic.Bool
}

// New makes a driver over a pool, which stays the caller's. The database is reached for
// when it is used first. The error is a [*driver.InvalidError].
func New(p *pgxpool.Pool, o *Options) (*Driver, error) {
	c := p.Config().ConnConfig
	return build(pool{p}, o, place(c.Host, c.Port, c.Database), func() {})
}

// NewDB is New for a *sql.DB whose driver is that of github.com/jackc/pgx/v5/stdlib.
func NewDB(db *sql.DB, o *Options) (*Driver, error) {
	if _, ok := db.Driver().(*stdlib.Driver); !ok {
		return nil, &driver.InvalidError{
			What: "database", Problem: fmt.Sprintf("has the driver %T", db.Driver()), Allowed: "that of github.com/jackc/pgx/v5/stdlib",
		}
	}
	return build(database{db}, o, "postgres", func() {})
}

// place is how messages name a database.
func place(host string, port uint16, database string) string {
	return fmt.Sprintf("postgres %s:%d/%s", host, port, database)
}

// patient is how many connections of a pool may wait for rows that are locked for long.
func patient(connections int) int { return max(1, connections/4) }

func build(from conns, o *Options, where string, closePool func()) (*Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	inbox := rand.Text()[:16]
	s := &server{conns: from, options: &options, where: where, setUp: make(chan struct{}, 1)}
	d := &Driver{server: s}
	deliver := func(signal driver.Signal) {
		d.listener.heard(signal)
		d.Deliver(signal)
	}
	store := newStore(s)
	d.listener = newListener(store, inbox, deliver)
	slow := sqltable.New(&batches{server: s}, sqltable.Options{
		Dialect: options.dialect(&store.hush), Inbox: inbox, Deliver: deliver, Retention: options.Retention,
		Patient: patient(from.most()), Properties: d.properties, Failed: s.failed, Told: store.told,
	})
	store.slow = slow
	fast := optimistic.New(store, inbox, deliver).Beside(slow)
	d.Driver = locktable.New(&table{fast, d, closePool}, inbox)
	return d, nil
}

// table is what the driver closes.
type table struct {
	*optimistic.Table
	driver *Driver
	pool   func()
}

func (t *table) Close() error {
	t.driver.closed.Store(true)
	t.driver.listener.close()
	err := t.Table.Close()
	t.pool()
	return err
}

// Hear implements locktable.Hearing.
func (t *table) Hear(f func(hears bool)) (stop func()) { return t.driver.listener.hear(f) }

// Scan implements locktable.Table. That of sqltable ends at a row that is damaged; the
// names behind it are read one by one.
func (t *table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		damaged := ""
		for row, err := range t.Table.Scan(ctx, prefix) {
			if err != nil {
				damaged = row.Name
			}
			if !yield(row, err) {
				return
			}
		}
		for damaged != "" {
			names, err := t.driver.server.names(ctx, prefix, damaged)
			damaged = ""
			for _, name := range names {
				row := locktable.Row{Name: name}
				row.Entry, row.Now, err = t.Read(ctx, name)
				if _, corrupt := errors.AsType[*locktable.CorruptError](err); err != nil && !corrupt {
					break
				}
				if !yield(row, err) {
					return
				}
				damaged, err = name, nil
			}
			if err != nil {
				yield(locktable.Row{}, err)
				return
			}
		}
	}
}

func (d *Driver) properties() driver.Properties {
	pushes := !d.server.options.NoPush && d.listener.pushes()
	return driver.Properties{
		Backend:       "postgres",
		Where:         d.server.place(),
		Clock:         "server",
		FenceSurvives: "crashes of the server, and loss of its data, as long as its clock is not set back past the last grant",
		MinTTL:        driver.MinTTL,
		Push:          pushes,
		PushesChanges: pushes,
	}
}

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := d.Driver.Acquire(ctx, c)
	switch {
	case err == nil:
		d.listener.watch(&c, true, c.TTL)
	case c.Queue && errors.Is(err, driver.ErrHeld):
		d.listener.watch(&c, false, c.QueueTTL)
	}
	return g, err
}

// AcquireAll implements driver.AllAcquirer.
func (d *Driver) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	grants, err := d.Driver.AcquireAll(ctx, claims)
	for i := range grants {
		d.listener.watch(&claims[i], true, claims[i].TTL)
	}
	return grants, err
}

// Renew implements driver.Driver.
func (d *Driver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	d.listener.keep(leases)
	return d.Driver.Renew(context.WithValue(ctx, sqltable.Renewing{}, true), leases)
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	d.listener.forget(l.Token)
	return d.Driver.Release(ctx, l)
}
