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
		d.tracking.renewing(renewals[i].Token)
	}
	answers, failed := make([]error, len(renewals)), 0
	for i, p := range d.renewAll(ctx, now, renewals, calls) {
		l := &renewals[i]
		if p.Err != nil {
			answers[i] = d.wrapErr(ctx, "renew", l.Name, p.Err)
			d.tracking.held(l.Token, 0)
			failed++
			continue
		}
		if answers[i] = readEnd(p); answers[i] != nil {
			d.tracking.forgetToken(l.Token)
		} else {
			d.tracking.held(l.Token, l.TTL)
		}
	}
	if failed == len(answers) && (failed > 1 || ended(ctx) != nil) {
		return nil, answers[0] // no lease has an answer
	}
	return answers, nil
}

// renewAll sends renewals. A renewal that writes a value has an end, and is sent alone.
func (d *Driver) renewAll(ctx context.Context, now time.Time, renewals []driver.LeaseRef, calls []Call) []Reply {
	if !slices.ContainsFunc(renewals, func(l driver.LeaseRef) bool { return l.Value != nil }) {
		return d.runAllQuickly(ctx, Renew, calls) // the usual case
	}
	replies := make([]Reply, len(renewals))
	var rest []Call
	var where []int
	for i := range renewals {
		l := &renewals[i]
		if l.Value == nil {
			rest, where = append(rest, calls[i]), append(where, i)
			continue
		}
		replies[i] = d.runWithEnd(ctx, now, l.Name, nil, func(end int64) Reply { return d.run(ctx, Renew, d.renewCall(l, end)) })
	}
	if len(rest) > 0 {
		for i, p := range d.runAllQuickly(ctx, Renew, rest) {
			replies[where[i]] = p
		}
	}
	return replies
}

// runAllQuickly runs calls that have one argument each, many in one script. Then it runs
// the calls that are not quick cases alone.
func (d *Driver) runAllQuickly(ctx context.Context, s *Script, calls []Call) []Reply {
	if d.client.Cluster || len(calls) == 1 {
		return d.runAll(ctx, s, calls)
	}
	var scripts []Call
	for some := range slices.Chunk(calls, maxStepsPerScript) {
		c := Call{Args: []string{""}}
		for _, one := range some {
			c.Keys, c.Args = append(c.Keys, one.Keys[0]), append(c.Args, one.Args[0])
		}
		scripts = append(scripts, c)
	}
	replies := make([]Reply, len(calls))
	var rest []Call
	var where []int
	sent := time.Now()
	for i, p := range runScripts(ctx, d.conn, Many, scripts) {
		if n := len(scripts[i].Keys); p.Err == nil && len(p.List) == n+1 {
			d.clock.learn(p.List[n], sent)
		}
		for k := range scripts[i].Keys {
			at := i*maxStepsPerScript + k
			switch {
			case p.Err != nil && !refused(p.Err):
				replies[at].Err = p.Err
			case p.Err == nil && len(p.List) > k && p.List[k] != 0:
				replies[at].Int = p.List[k]
			default:
				rest, where = append(rest, calls[at]), append(where, at)
			}
		}
	}
	if len(rest) > 0 {
		for i, p := range d.runAll(ctx, s, rest) {
			replies[where[i]] = p
		}
	}
	return replies
}
