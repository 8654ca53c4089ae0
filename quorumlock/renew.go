package quorumlock

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Renew implements driver.Driver. Each node gets the whole batch, and Renew counts the
// answers for each lease. The lease's error is nil if a majority of all nodes has renewed
// it, and ErrNoSuchLease if so many nodes lack it that no majority can have it. Otherwise
// the error has the failures of the nodes. Renew then repairs each renewed lease on the
// nodes that lack it (repair.go).
func (d *quorum) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	for _, l := range leases {
		err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL), driver.ValidateValue(l.Value))
		if err != nil {
			return nil, err
		}
	}
	if err := d.beginOperation(ctx); err != nil {
		return nil, err
	}
	defer d.work.Done()
	if len(leases) == 0 {
		return nil, nil
	}
	var orderToken driver.Token
	leases = slices.Clone(leases) // a slow node may read the leases after Renew has returned
	for k := range leases {
		leases[k].Value = bytes.Clone(leases[k].Value)
	}
	if len(leases) == 1 && leases[0].Value != nil {
		orderToken = leases[0].Token // so that each node writes values in the order of the calls
	}
	renewed := make([]bool, len(leases))
	renewReturned := make(chan struct{})
	defer close(renewReturned)
	sent := time.Now()
	polled := poll(ctx, d, pollRequest[[]error]{
		nodes: d.allNodes, token: orderToken,
		send: func(ctx context.Context, i int) ([]error, error) {
			answers, err := d.nodes[i].Renew(ctx, leases)
			if err == nil && len(answers) != len(leases) {
				err = errors.New("the node did not answer for every lease")
			}
			return answers, err
		},
		decided: func(polled []vote[[]error]) bool {
			for k := range leases {
				if votes := d.votesFor(polled, k); succeeded(votes) < d.majority && !d.lacksMajority(votes) {
					return false
				}
			}
			return true
		},
		onDone: func(i int, v vote[[]error]) {
			if v.err == nil {
				d.work.Go(func() {
					<-renewReturned // then nothing changes renewed any more
					d.repairAll(i, leases, v.value, renewed)
				})
			}
		},
	})
	answers := make([]error, len(leases))
	for k, l := range leases {
		switch votes := d.votesFor(polled, k); {
		case succeeded(votes) >= d.majority:
			d.holdings.recordRenewal(l, sent)
			renewed[k] = true
		case d.lacksMajority(votes): // with an even number of nodes, half of them can decide this
			d.holdings.remove(l.Token, l.Name)
			answers[k] = d.notHeld(votes)
		case succeeded(polled) < d.majority:
			return nil, failuresErr(ctx, d, "renew", onlyName(leases), polled)
		default:
			answers[k] = failuresErr(ctx, d, "renew", l.Name, votes)
		}
	}
	return answers, nil
}

// votesFor returns the nodes' answers for one lease of a batch.
func (d *quorum) votesFor(polled []vote[[]error], k int) []vote[struct{}] {
	votes := make([]vote[struct{}], len(polled))
	for i, p := range polled {
		if votes[i].err = p.err; p.err == nil {
			votes[i].err = p.value[k]
		}
	}
	return votes
}

// onlyName returns the name of a batch that has only one lease.
func onlyName(leases []driver.LeaseRef) string {
	if len(leases) == 1 {
		return leases[0].Name
	}
	return ""
}
