package mongolock

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

func init() { engine.Register(openURL, "mongodb", "mongodb+srv") }

// Open opens the servers that a URL names; the package comment has the forms. Closing the
// driver closes what was opened. The error is a [*driver.InvalidError] or a
// [*driver.Error], without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (*Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	client, err := mongo.Connect(p.client)
	if err != nil {
		return nil, &driver.Error{Backend: "mongodb " + p.own.Where, Op: "open", Err: err}
	}
	d, err := build(client.Database(p.database), &p.own, func() { disconnect(client) })
	if err != nil {
		disconnect(client)
		return nil, err
	}
	if _, err := d.store.server(ctx); err != nil {
		_ = d.Close()
		e := &driver.Error{}
		if errors.As(err, &e) {
			e.Op = "open"
		}
		return nil, err
	}
	return d, nil
}

// disconnect closes a client. What is under way has a moment to end.
func disconnect(c *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = c.Disconnect(ctx)
}
