package redisscript

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// AcquireAll implements driver.AllAcquirer for names that one script can take: all names
// of one server, or names in one slot of a cluster. For other names, and if replicas have
// to acknowledge grants, it returns errors.ErrUnsupported; the caller then claims the
// names one by one.
func (d *Driver) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	if err := driver.ValidateAll(claims); err != nil {
		return nil, err
	}
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Fences = 1
		if d.WaitReplicas > 0 || d.client.Cluster && slot(claims[i].Name) != slot(claims[0].Name) {
			return nil, fmt.Errorf("%w: one script for these names", errors.ErrUnsupported)
		}
	}
	now := time.Now()
	if err := d.readyAt(ctx, now); err != nil {
		return nil, err
	}
	grants, refused, err := d.acquireAll(ctx, now, claims)
	if err == nil && refused == nil {
		err = ctxErrAt(ctx, time.Now())
	}
	for i := range claims {
		d.tracking.recordAnswer(&claims[i], time.Now(), refused, err)
	}
	switch {
	case isSlotMoving(err):
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err) // nothing was run
	case err != nil:
		return nil, d.wrapErr(ctx, "acquire", d.nameForErr(ctx, claims, err), err)
	case refused != nil:
		return nil, refused
	}
	return grants, nil
}

// nameForErr returns the name for the error of a step. If the error is about stored data,
// that is the first name whose data cannot be read. Otherwise it is the first name.
func (d *Driver) nameForErr(ctx context.Context, claims []driver.Claim, err error) string {
	if isDamage(DriverError("", "", "", err)) {
		for i := range claims {
			if _, bad := d.Inspect(ctx, claims[i].Name); isDamage(bad) {
				return claims[i].Name
			}
		}
	}
	return claims[0].Name
}

func (d *Driver) acquireAll(ctx context.Context, now time.Time, claims []driver.Claim) (grants []driver.Grant, refused, err error) {
	claimants := make([]string, len(claims))
	for i := range claims {
		d.tracking.addClaim(&claims[i])
		if claimants[i], err = d.subscribeForClaim(ctx, &claims[i]); err != nil {
			return nil, nil, err
		}
	}
	resend := func(end time.Time) bool {
		return !slices.ContainsFunc(claims, func(c driver.Claim) bool { return !d.mayResendClaim(&c, end) })
	}
	var lostErr error
	p := d.runWithEnd(ctx, now, claims[0].Name, resend, func(end int64) Reply {
		p := run(ctx, d.conn, All, d.allCall(claims, end, claimants))
		lostErr = cmp.Or(p.Err, lostErr)
		return p
	})
	grants, refused, err = readAll(p, claims)
	if refused != nil && lostErr != nil {
		// The lost request may have granted leases to some of the claims. They last until
		// the caller releases them.
		return nil, nil, lostErr
	}
	return grants, refused, err
}

// allCall returns the keys and arguments of lua/all.lua.
func (o *Options) allCall(claims []driver.Claim, end int64, claimants []string) Call {
	var c Call
	for i := range claims {
		claim := &claims[i]
		claimArg := o.appendClaimArg(nil, claim, end, claimants[i])
		claimArg[0] = otherAcquire
		call := o.call(claim.Name, claimArg, appendWaitArg(nil, claim), valueArg(claim))
		c.Keys, c.Args = append(c.Keys, call.Keys...), append(c.Args, call.Args...)
	}
	return c
}

// readAll reads the answer of lua/all.lua.
func readAll(p Reply, claims []driver.Claim) (grants []driver.Grant, refused, err error) {
	if p.Err == nil && len(p.Text) > 5 && p.Text[0] == 'r' {
		if i := binary.BigEndian.Uint32([]byte(p.Text[1:])); i < uint32(len(claims)) {
			_, refused, err = readClaim(Reply{Text: p.Text[5:]}, &claims[i])
			return nil, refused, err
		}
	}
	if p.Err == nil && len(p.List) != len(claims) {
		p.Err = &damage{"other answers than claims"}
	}
	if p.Err != nil {
		return nil, nil, p.Err
	}
	for i, fence := range p.List {
		g, err := readGrant(Reply{Int: fence}, &claims[i])
		if err != nil {
			return nil, nil, err
		}
		grants = append(grants, g)
	}
	return grants, nil, nil
}
