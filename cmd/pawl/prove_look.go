package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
	"github.com/pawl-go/pawl/internal/access"
)

// An inspector inspects the names of a run, for the controller.
type inspector struct {
	url           string
	namespaces    []string
	names         []history.Name
	ttl           time.Duration
	serverStarted bool // prove has just started the server

	hasBegun bool // begin has succeeded
}

func (i *inspector) open(ctx context.Context) (*pawl.Client, error) {
	o := &pawl.Options{TTL: i.ttl}
	access.SetNamespaces(o, i.namespaces)
	return pawl.Open(ctx, i.url, o)
}

// begin checks that the namespace is not in use, and records the properties of the
// database.
func (i *inspector) begin(ctx context.Context, run *history.Run) error {
	c, err := i.open(ctx)
	if i.serverStarted && errors.Is(err, pawl.ErrUnavailable) { // a server may listen before it can answer
		ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
		defer cancel()
		c, err = i.openPatiently(ctx)
	}
	if err != nil {
		return err
	}
	defer closeSoon(c) //nolint:errcheck // it holds nothing
	for e, err := range c.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("prove cannot tell whether its names are free: %w", err)
		}
		return fmt.Errorf("the namespace of prove is in use: it has %q", e.Name)
	}
	run.Backend, run.Server, i.hasBegun = c.Properties().Location, versionOf(ctx, c), true
	return nil
}

// versionOf returns the server's version as the doctor reports it, or "" if the user
// lacks the right.
func versionOf(ctx context.Context, c *pawl.Client) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	findings, _ := c.Diagnose(ctx)
	var all []string
	for _, f := range findings {
		if f.IsFact() {
			all = append(all, f.Detail)
		}
	}
	return strings.Join(all, "; ")
}

// openPatiently opens a client, and retries until ctx ends.
func (i *inspector) openPatiently(ctx context.Context) (*pawl.Client, error) {
	for {
		c, err := i.open(ctx)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// leftClaims waits until the leases of killed workers have expired, and returns the
// holders and waiters that are left.
func (i *inspector) leftClaims() ([]history.Left, error) {
	if isMemory(i.url) { // only the worker can read its memory
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*i.ttl+60*time.Second)
	defer cancel()
	c, err := i.openPatiently(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSoon(c) //nolint:errcheck // it holds nothing
	return worker.Left(ctx, c, i.names, 3*i.ttl+10*time.Second)
}
