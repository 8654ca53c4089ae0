// Package postgreslock keeps locks in a PostgreSQL database that is already there.
package postgreslock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/sqltable"
	"github.com/pawl-go/pawl/locktable"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Schema is where the tables are. It is made if it is missing. Applications with
	// different ones do not meet. Default: "pawl".
	Schema string

	// Prefix begins the names of the tables, for a schema that has others in it.
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant.
	// When it is forgotten, the next fence is greater all the same, unless the clock was
	// set back past that grant. Default: 24 hours; at least a minute.
	Retention time.Duration

	// NoPush asks for signals instead of listening for them.
	NoPush bool
}

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
	if out.Retention < time.Minute {
		return out, &driver.InvalidError{What: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	}
	return out, nil
}

// Driver is one client of a database.
type Driver struct {
	*locktable.Driver
}

// New makes a driver over a pool, which stays the caller's.
func New(pool *pgxpool.Pool, o *Options) (*Driver, error) {
	db := stdlib.OpenDBFromPool(pool)
	c := pool.Config().ConnConfig
	return build(db, o, whereOf(c), func() { _ = db.Close() })
}

// NewDB makes a driver over a *sql.DB, which stays the caller's.
func NewDB(db *sql.DB, o *Options) (*Driver, error) {
	return build(db, o, "postgres", func() {})
}

func whereOf(c *pgx.ConnConfig) string {
	return fmt.Sprintf("postgres %s:%d/%s", c.Host, c.Port, c.Database)
}

func build(db *sql.DB, o *Options, where string, closeDB func()) (*Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	at := &place{where}
	inbox := rand.Text()[:16]
	d := &Driver{}
	t := sqltable.New(&checked{DB: sqltable.Over(db, begin), db: db, options: &options}, sqltable.Options{
		Dialect:   options.dialect(),
		Inbox:     inbox,
		Deliver:   func(s driver.Signal) { d.Deliver(s) },
		Retention: options.Retention,
		Properties: func() driver.Properties {
			return driver.Properties{
				Backend: "postgres", Where: where, Clock: "server", MinTTL: driver.MinTTL,
				FenceSurvives: "crashes and restarts of the server, and loss of its data, as long as its clock is not set back past the last grant",
			}
		},
		Failed: at.failed,
	})
	d.Driver = locktable.New(&closing{t, closeDB}, inbox)
	return d, nil
}

// closing closes what the driver opened.
type closing struct {
	*sqltable.Table
	close func()
}

func (c *closing) Close() error {
	err := c.Table.Close()
	c.close()
	return err
}

// Open opens the database that a URL names.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return open(ctx, u)
}

func open(ctx context.Context, u *url.URL) (*Driver, error) {
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	d, err := build(db, nil, whereOf(config.ConnConfig), func() { _ = db.Close(); pool.Close() })
	if err == nil {
		_, err = d.Inspect(ctx, "open")
	}
	return d, err
}
