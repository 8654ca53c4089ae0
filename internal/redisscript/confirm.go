package redisscript

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Confirmed grants. Replication is asynchronous, so a grant that was just made is on the
// master alone, and is forgotten with it. With WaitReplicas a grant is shown only
// when so many replicas have acknowledged it.
//
// WAIT tells how many replicas have what its connection has written. A grant may have
// been written by another one: by whoever released the name before, and passed it on, or
// by an attempt whose reply was lost. Replication is one stream in the order of the
// writes. So the claimant writes something itself, after it has learned of the grant, and
// waits for that; and it writes it where the lease is found, in one step, for after a
// fail-over the server may be one that never had it.

// DefaultReplicaTimeout is how long replicas have to acknowledge a grant, if nothing else
// is said.
const DefaultReplicaTimeout = 500 * time.Millisecond

const (
	maxReplicas       = 100
	maxReplicaTimeout = time.Minute
)

// A Confirmation is a script that is run, and waited for until replicas have what was
// written by then.
type Confirmation struct {
	Script *Script
	Call
	Replicas int
	Timeout  time.Duration

	// Server is the address of the one to ask; empty for the one that has the keys, as
	// far as it is known. Asking says that it is just getting them.
	Server string
	Asking bool
}

// confirm waits for the replicas. If too few acknowledge in time, the grant is given
// back, and the error says so. When ctx ends first, or that fails, nothing is known, as
// ever: it is for the caller to ask again, or to release.
func (d *Driver) confirm(ctx context.Context, c *driver.Claim) error {
	timeout := d.WaitTimeout
	if end, ok := ctx.Deadline(); ok { // what is left is for giving it back
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
	d.tracking.over(c.Token)
	bye, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if back := d.run(bye, Release, d.releaseCall(&l, 0)); back.Err != nil {
		p.Err = back.Err
	}
	return p.Err
}

// confirmed follows a name that is moved to another node of a cluster. The sender does
// not: the client would send the script again, but not the WAIT, which would then have
// asked the wrong one.
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
