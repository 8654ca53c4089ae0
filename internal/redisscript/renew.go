package redisscript

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Renew implements driver.Driver. It sends one script for each 64 leases, or in a cluster
// for each lease, and all scripts in one pipeline. One script for thousands of leases
// would block the server for its whole run.
func (d *Driver) Renew(ctx context.Context, renewals []driver.LeaseRef) ([]error, error) {
	calls := make([]Call, len(renewals))
	for i := range renewals {
		l := &renewals[i]
		err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL), driver.ValidateValue(l.Value))
		if err != nil {
			return nil, err
		}
		calls[i] = d.renewCall(l, 0)
	}
	now := time.Now()
	if err := d.readyAt(ctx, now); err != nil || len(renewals) == 0 {
		return nil, err
	}
	for i := range renewals {
		d.tracking.disarm(renewals[i].Token)
	}
	answers, failed := make([]error, len(renewals)), 0
	for i, p := range d.renewAll(ctx, now, renewals, calls) {
		l := &renewals[i]
		if p.Err != nil {
			answers[i] = d.wrapErr(ctx, "renew", l.Name, p.Err)
			d.tracking.recordHeld(l.Token, 0)
			failed++
			continue
		}
		if answers[i] = readEnd(p); answers[i] != nil {
			d.tracking.forgetToken(l.Token)
		} else {
			d.tracking.recordHeld(l.Token, l.TTL)
		}
	}
	if failed == len(answers) && (failed > 1 || ctxErr(ctx) != nil) {
		return nil, answers[0] // no lease has an answer
	}
	return answers, nil
}

// renewAll sends renewals: many in one script if possible, and the others alone. A
// renewal that writes a value has an end.
func (d *Driver) renewAll(ctx context.Context, now time.Time, renewals []driver.LeaseRef, calls []Call) []Reply {
	replies := make([]Reply, len(calls))
	var quick, alone []int
	for i := range renewals {
		switch l := &renewals[i]; {
		case l.Value != nil:
			replies[i] = d.runWithEnd(ctx, now, l.Name, nil, func(end int64) Reply { return run(ctx, d.conn, Renew, d.renewCall(l, end)) })
		case d.client.Cluster || len(calls) == 1:
			alone = append(alone, i)
		default:
			quick = append(quick, i)
		}
	}
	alone = append(alone, d.renewQuickly(ctx, quick, calls, replies)...)
	rest := make([]Call, len(alone))
	for k, i := range alone {
		rest[k] = calls[i]
	}
	for k, p := range runAll(ctx, d.conn, Renew, rest) {
		replies[alone[k]] = p
	}
	return replies
}

// renewQuickly sends the renewals with these indices, many in one script, and stores
// their replies. It returns the renewals that are not quick cases.
func (d *Driver) renewQuickly(ctx context.Context, quick []int, calls []Call, replies []Reply) (alone []int) {
	batches := slices.Collect(slices.Chunk(quick, maxStepsPerScript))
	scripts := make([]Call, len(batches))
	for k, batch := range batches {
		c := Call{Args: []string{""}}
		for _, i := range batch {
			c.Keys, c.Args = append(c.Keys, calls[i].Keys[0]), append(c.Args, calls[i].Args[0])
		}
		scripts[k] = c
	}
	sent := time.Now()
	for k, p := range runAll(ctx, d.conn, Many, scripts) {
		n := len(batches[k])
		answered := p.Err == nil && len(p.List) == n+1
		if answered {
			d.clock.learn(p.List[n], sent)
		}
		for pos, i := range batches[k] {
			switch {
			case p.Err != nil && !isNoPerm(p.Err):
				replies[i].Err = p.Err
			case answered && p.List[pos] != 0:
				replies[i].Int = p.List[pos]
			default:
				alone = append(alone, i)
			}
		}
	}
	return alone
}
