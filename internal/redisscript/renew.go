package redisscript

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl/driver"
)

// Renew implements driver.Driver: a script for each 64 leases, or in a cluster for each
// one, all of them in one pipeline. One script for thousands would stop the server for as
// long as it takes.
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
	if err := d.ready(ctx); err != nil || len(renewals) == 0 {
		return nil, err
	}
	for i := range renewals {
		d.tracking.renewing(renewals[i].Token)
	}
	answers, failed := make([]error, len(renewals)), 0
	for i, p := range d.runAllQuickly(ctx, Renew, calls) {
		l := &renewals[i]
		if p.Err != nil {
			answers[i] = d.trouble(ctx, "renew", l.Name, p.Err)
			d.tracking.held(l.Token, 0)
			failed++
			continue
		}
		if answers[i] = readEnd(p); answers[i] != nil {
			d.tracking.over(l.Token)
		} else {
			d.tracking.held(l.Token, l.TTL)
		}
	}
	if failed == len(answers) && (failed > 1 || ended(ctx) != nil) {
		return nil, answers[0] // nothing is known of any of them
	}
	return answers, nil
}
