package redisscript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Replication is asynchronous, so a new grant is lost if the master fails before it has
// replicated the grant. With WaitReplicas, the driver returns a grant only when that many
// replicas have acknowledged it.
//
// WAIT counts the replicas that have all writes of its own connection. But another
// connection may have written the grant: the connection of the last holder, whose release
// granted it, or of an attempt whose reply was lost. Replication keeps the order of
// writes. So the driver makes another write after it has learned of the grant, and waits
// until the replicas have that write. The script that writes also checks the lease,
// because after a fail-over the server may not have it.

const (
	maxReplicas       = 100
	maxReplicaTimeout = time.Minute
)

// confirm waits for the replicas. If too few acknowledge in time, it releases the grant,
// and returns an error with their number. If ctx ends first, or the release fails, the
// outcome is unknown, as after any lost request: the caller claims again, or releases.
func (d *Driver) confirm(ctx context.Context, c *driver.Claim) error {
	timeout := d.WaitTimeout
	if end, ok := ctx.Deadline(); ok { // the rest of the time is for the release
		timeout = max(min(timeout, time.Until(end)*3/4), time.Millisecond)
	}
	l := driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
	p, n := d.runConfirm(ctx, d.renewCall(&l, 0), timeout)
	if p.Err == nil {
		p.Err = readEnd(p)
	}
	if p.Err == nil && n < int64(d.WaitReplicas) {
		p.Err = fmt.Errorf("granted and released again: acknowledged by %d of %d replicas within %v", n, d.WaitReplicas, timeout)
	}
	if p.Err == nil {
		return nil
	}
	d.tracking.forgetToken(c.Token)
	releaseCtx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if released := run(releaseCtx, d.conn, Release, d.releaseCall(&l, 0)); released.Err != nil {
		p.Err = released.Err
	}
	return p.Err
}

// runConfirm runs the script Confirm, and then WAIT on the same connection. It returns
// the reply of the script, and the number of replicas that have acknowledged it. If the
// name has moved to another node of a cluster, runConfirm sends both to that node. The
// library would send the script to the new node, but the WAIT to the old one.
func (d *Driver) runConfirm(ctx context.Context, c Call, timeout time.Duration) (_ Reply, replicas int64) {
	ctx, cancel := context.WithTimeout(ctx, timeout+serverTimeout)
	defer cancel()
	if d.client.ReadTimeout > 0 { // otherwise the library gives up before the answer
		timeout = min(timeout, d.client.ReadTimeout*3/4)
	}
	node, script, asking := Conn(d.conn), Confirm.command(c), []Command(nil)
	wait := Command{Words: []string{"WAIT", strconv.Itoa(d.WaitReplicas), strconv.FormatInt(timeout.Milliseconds(), 10)}, Call: Call{OwnConn: true}}
	for range 8 {
		all := node.DoMany(ctx, append(slices.Clip(asking), script, wait), true)
		p, waited := all[len(asking)], all[len(asking)+1]
		redirect := redirection.FindStringSubmatch(fmt.Sprint(p.Err))
		switch {
		case p.Err == nil:
			p.Err = waited.Err
			return p, waited.Int
		case isSlotMoving(p.Err) && len(script.Keys) > 1:
			c.Keys = c.Keys[:1]
			script = Confirm.command(c)
		case isNoScript(p.Err):
			script.Words = Confirm.evalWords(len(script.Keys))
		case redirect != nil && d.client.Cluster:
			var err error
			if node, err = d.nodeAt(ctx, redirect[2]); err != nil {
				return Reply{Err: err}, 0
			}
			if asking = nil; redirect[1] == "ASK" {
				asking = []Command{{Words: []string{"ASKING"}}}
			}
		default:
			return p, 0
		}
	}
	return Reply{Err: errUnknownNode}, 0
}

// nodeAt returns the node of a cluster that has this address.
func (d *Driver) nodeAt(ctx context.Context, address string) (Conn, error) {
	nodes, err := d.conn.nodes(ctx, true)
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == address }); i >= 0 {
		return nodes[i], nil
	}
	return nil, cmp.Or(err, errUnknownNode)
}

var errUnknownNode = errors.New("the name was moved to a node that is not known yet")

var redirection = regexp.MustCompile(`^(MOVED|ASK) \d+ (\S+)$`)
