package etcdlock

import (
	"context"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
)

func init() {
	for _, scheme := range []string{"etcd", "etcds"} {
		driver.Register(scheme, func(ctx context.Context, u *url.URL) (driver.Driver, error) {
			d, err := open(ctx, u)
			if err != nil {
				return nil, err // not d: a nil *Driver would be no nil driver.Driver
			}
			return d, nil
		})
	}
}

// Open opens the cluster that a URL names; the package comment has the forms. Closing the
// driver closes what was opened. The error is a [*driver.InvalidError] or a
// [*driver.Error], without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return open(ctx, u)
}

func open(ctx context.Context, u *url.URL) (*Driver, error) {
	config, own, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	client, err := dial(ctx, config)
	if err != nil {
		return nil, opening(ctx, config, err)
	}
	d, err := build(client, own, true)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	if err := d.store.readClock(ctx); err != nil {
		_ = d.Close()
		return nil, opening(ctx, config, err)
	}
	return d, nil
}

// opening is the error of an opening that failed.
func opening(ctx context.Context, config *clientv3.Config, err error) error {
	s := &store{where: hosts(config.Endpoints), life: context.Background()}
	err = s.trouble(ctx, err)
	if e, ok := err.(*driver.Error); ok { //nolint:errorlint // it was made just now
		e.Op = "open"
	}
	return err
}

// dial makes the client. With a password it asks the server, without a ctx: so that goes
// on in the background when ctx ends first, and what it brings is closed.
func dial(ctx context.Context, config *clientv3.Config) (*clientv3.Client, error) {
	type result struct {
		client *clientv3.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		client, err := clientv3.New(*config)
		done <- result{client, err}
	}()
	select {
	case r := <-done:
		return r.client, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}
