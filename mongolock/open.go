package mongolock

import (
	"context"
	"crypto/rand"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

func init() { engine.Register(openURL, "mongodb", "mongodb+srv") }

type lockDriver struct {
	engine.Tracked
	store *store
}

// New makes a driver over a database of an open client. Closing the driver does not close
// the client. The driver ignores the write and read concerns of that database, and uses
// its own. Use a separate client for locks: a renewal needs a connection, and a lease is
// lost if your requests use the whole pool. The error is a [*driver.InvalidError].
func New(db *mongo.Database, o *Options) (driver.Driver, error) {
	if db == nil {
		return nil, &driver.InvalidError{Argument: "database", Problem: "is nil", Allowed: "an open *mongo.Database"}
	}
	return engine.DriverOrError(build(db, o, func() {}))
}

// Open opens the servers of a URL; the package comment has the forms. Closing the driver
// closes its client. The error is a [*driver.InvalidError] or a [*driver.Error], without
// the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	client, err := mongo.Connect(p.client)
	if err != nil {
		return nil, &driver.Error{Backend: "mongodb " + p.options.Location, Err: err}
	}
	d, err := build(client.Database(p.database), &p.options, func() { disconnect(client) })
	if err != nil {
		disconnect(client)
		return nil, err
	}
	if _, err := d.store.server(ctx); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func build(db *mongo.Database, o *Options, closeClient func()) (*lockDriver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &store{Options: options, inbox: rand.Text()[:16], claims: engine.NewClaims(), maxBytes: maxDocumentBytes, closeClient: closeClient, db: db}
	t.life, t.end = context.WithCancel(context.Background())
	d := &lockDriver{store: t}
	deliver := func(s driver.Signal) {
		t.claims.Signaled(s)
		d.Deliver(s)
	}
	table := swap.New(t, t.inbox, deliver)
	d.Tracked = engine.NewTracked(locktable.New(table, t.inbox), t.claims, nil)
	t.loops.Go(func() { t.listen(deliver) })
	return d, nil
}

func (t *store) location() string {
	location := "mongodb " + t.Location + "/" + t.db.Name()
	if t.Collection != defaultCollection {
		location += " collection=" + t.Collection
	}
	return location
}

// disconnect closes a client, after a moment in which requests under way may end.
func disconnect(c *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = c.Disconnect(ctx)
}
