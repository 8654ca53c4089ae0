package redisscript

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Confirmed grants. Replication is asynchronous, so at first only the master has a new
// grant, and it is lost with the master. With WaitReplicas the driver returns a grant
// only when that many replicas have acknowledged it.
//
// WAIT counts the replicas that have what its own connection has written. Another
// connection may have written the grant: the connection of the holder that passed the
// name on, or of an attempt whose reply was lost. Replication is one stream in the order
// of the writes. So the driver writes something itself after it has learned of the
// grant, and waits until the replicas have that. One script checks the lease and writes,
// because after a fail-over the server may never have had the lease.

// DefaultReplicaTimeout is the time that replicas have to acknowledge a grant, unless the
// options have another WaitTimeout.
const DefaultReplicaTimeout = 500 * time.Millisecond

const (
	maxReplicas       = 100
	maxReplicaTimeout = time.Minute
)

// A Confirmation is a script to run, and how many replicas have to acknowledge what it
// wrote.
type Confirmation struct {
	Script *Script
	Call
	Replicas int
	Timeout  time.Duration

	// Server is the address of the server to ask; empty for the server that has the keys,
	// as far as the client knows. Asking is set if the slot of the keys is being moved to
	// that server.
	Server string
	Asking bool
}

// confirm waits for the replicas. If too few acknowledge in time, it gives the grant
// back, and the error says so. If ctx ends first, or giving back fails, the outcome is
// unknown, as it is after any lost request: the caller asks again, or releases.
func (d *Driver) confirm(ctx context.Context, c *driver.Claim) error {
	timeout := d.WaitTimeout
	if end, ok := ctx.Deadline(); ok { // the rest of the time is for giving the grant back
		timeout = max(min(timeout, time.Until(end)*3/4), time.Millisecond)
	}
	l := driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
	p, n := d.confirmed(ctx, Confirmation{
		Script: Confirm, Call: d.renewCall(&l),
		Replicas: d.WaitReplicas, Timeout: timeout,
	})
	if p.Err == nil {
		p.Err = readEnd(p)
	}
	if p.Err == nil && n < d.WaitReplicas {
		p.Err = fmt.Errorf("granted, and given back: it was acknowledged by %d of %d replicas within %v", n, d.WaitReplicas, timeout)
	}
	if p.Err == nil {
		return nil
	}
	d.tracking.forgetToken(c.Token)
	bye, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if back := d.run(bye, Release, d.releaseCall(&l, 0)); back.Err != nil {
		p.Err = back.Err
	}
	return p.Err
}

// confirmed follows a name that moves to another node of a cluster. The sender cannot,
// because a client would send the script to the new node, but the WAIT to the old.
func (d *Driver) confirmed(ctx context.Context, c Confirmation) (p Reply, replicas int) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+serverTimeout)
	defer cancel()
	for range 5 {
		p, replicas = d.sender.Confirm(ctx, c)
		if p.Err == nil {
			break
		}
		if moving(p.Err) && len(c.Keys) > 1 {
			c.Keys = c.Keys[:1]
		} else if to := redirection.FindStringSubmatch(p.Err.Error()); to != nil {
			c.Asking, c.Server = to[1] == "ASK", to[2]
		} else {
			break
		}
	}
	return p, replicas
}

var redirection = regexp.MustCompile(`^(MOVED|ASK) \d+ (\S+)$`)
