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
// would block the server as long as it runs.
func (d *Driver) Renew(ctx context.Context, renewals []driver.LeaseRef) ([]error, error) {
	calls := make([]Call, len(renewals))
	for i := range renewals {
		l := &renewals[i]
		err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL), driver.ValidateValue(l.Value))
		if err != nil {
			return nil, err
		}
		calls[i] = d.renewCall(l)
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
			answers[i] = d.trouble(ctx, "renew", l.Name, p.Err)
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
		return nil, answers[0] // nothing is known of any lease
	}
	return answers, nil
}

// renewAll sends renewals. A renewal that writes a value has an end, and goes alone.
func (d *Driver) renewAll(ctx context.Context, now time.Time, renewals []driver.LeaseRef, calls []Call) []Reply {
	writes := func(l driver.LeaseRef) bool { return l.Value != nil }
	if !slices.ContainsFunc(renewals, writes) {
		return d.runAllQuickly(ctx, Renew, calls) // the usual case
	}
	replies := make([]Reply, len(renewals))
	var rest []Call
	for i := range renewals {
		l := &renewals[i]
		if !writes(*l) {
			rest = append(rest, calls[i])
			continue
		}
		replies[i] = d.runWithEnd(ctx, now, l.Name, nil, func(end int64) Reply { return d.run(ctx, Renew, d.writeCall(l, end)) })
	}
	if len(rest) == 0 {
		return replies
	}
	others := d.runAllQuickly(ctx, Renew, rest)
	for i := range renewals {
		if !writes(renewals[i]) {
			replies[i], others = others[0], others[1:]
		}
	}
	return replies
}
