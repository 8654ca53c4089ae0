package quorumlock

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Inspect implements driver.Driver. It returns a holder if the nodes that have it,
// together with the silent nodes, are a majority. It returns every claim that waits on
// any node, in the order of the places on the nodes.
func (d *quorum) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := d.beginOperation(ctx, driver.ValidateName(name)); err != nil {
		return driver.Entry{}, err
	}
	defer d.work.Done()
	votes := d.readEntries(ctx, name, d.hasMajority)
	if succeeded(votes) < d.majority {
		return driver.Entry{}, failuresErr(ctx, d, "read", name, votes)
	}
	return d.merge(name, votes), nil
}

// readEntries reads a name on all nodes, until decided returns true.
func (d *quorum) readEntries(ctx context.Context, name string, decided func([]vote[driver.Entry]) bool) []vote[driver.Entry] {
	return poll(ctx, d, pollRequest[driver.Entry]{
		nodes: d.allNodes, decided: decided,
		send: func(ctx context.Context, i int) (driver.Entry, error) { return d.nodes[i].Inspect(ctx, name) },
	})
}

func (d *quorum) hasMajority(votes []vote[driver.Entry]) bool { return succeeded(votes) >= d.majority }

// merge makes one entry of the entries of several nodes.
func (d *quorum) merge(name string, votes []vote[driver.Entry]) driver.Entry {
	out := driver.Entry{Name: name}
	entries := values(votes)
	var fences []uint64
	var closed []time.Duration
	for _, e := range entries {
		fences, closed = append(fences, e.Fence), append(closed, e.ClosedFor)
	}
	out.Fence = d.majorityFence(fences)
	out.ClosedFor = nthSmallest(d.majority, closed)
	out.Value, out.ValueFence = d.valueOf(entries)
	silent := len(d.nodes) - len(entries)
	var waiting []*shownClaim
	medianPlace := map[*shownClaim]int{} // the median of its places, 0 where it holds
	for _, s := range groupByClaim(votes) {
		switch {
		case len(s.holders) > 0 && len(s.holders)+silent >= d.majority:
			out.Holders = append(out.Holders, d.mergeHolder(s, len(entries)))
		case len(s.waiters) > 0:
			places := make([]int, len(s.holders), len(s.holders)+len(s.waiters))
			for _, w := range s.waiters {
				places = append(places, w.place)
			}
			slices.Sort(places)
			waiting, medianPlace[s] = append(waiting, s), places[len(places)/2]
		}
	}
	slices.SortFunc(out.Holders, func(a, b driver.Holder) int { return cmp.Compare(a.Fence, b.Fence) })
	slices.SortFunc(waiting, func(a, b *shownClaim) int {
		return cmp.Or(cmp.Compare(medianPlace[a], medianPlace[b]), a.compare(b.tag))
	})
	for _, s := range waiting {
		w := s.waiters[0].Waiter
		var since []time.Time
		for _, x := range s.waiters {
			w.ExpiresIn = max(w.ExpiresIn, x.ExpiresIn)
			since = append(since, x.Since)
		}
		w.Since = median(since).Add(ticketHeadStart) // on a node, Since is the ticket
		out.Waiters = append(out.Waiters, w)
	}
	return out
}

// List implements driver.Lister, if every node can list. It reads the lists of all nodes,
// in parallel, before it yields the first entry.
func (d *quorum) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		all, err := d.listOnNodes(ctx, prefix)
		if err != nil {
			yield(driver.Entry{}, err)
			return
		}
		names := map[string]bool{}
		for _, answer := range all {
			for name := range answer.value {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			votes := unansweredVotes[driver.Entry](len(all))
			for i, answer := range all {
				if answer.err == nil {
					votes[i] = answer.value[name] // an empty entry if the node does not list the name
				}
			}
			e := driver.Entry{Name: name}
			if succeeded(votes) < d.majority {
				err = failuresErr(ctx, d, "list", name, votes)
			} else if e, err = d.merge(name, votes), nil; len(e.Holders)+len(e.Waiters) == 0 && e.ClosedFor == 0 {
				continue // nothing to show: claims hold the name on less than a majority, and none waits
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// A listing has a node's entries by name, or the errors of damaged rows. A node with a
// damaged row does not count for that name.
type listing = map[string]vote[driver.Entry]

// majorityReadsAll reports whether a majority has listed and can read all its names.
func (d *quorum) majorityReadsAll(votes []vote[listing]) bool {
	listings, damaged, mostDamages := values(votes), map[string]int{}, 0
	for _, entries := range listings {
		for name, v := range entries {
			if v.err != nil {
				damaged[name]++
				mostDamages = max(mostDamages, damaged[name])
			}
		}
	}
	return len(listings)-mostDamages >= d.majority
}

func (d *quorum) listOnNodes(ctx context.Context, prefix string) ([]vote[listing], error) {
	if err := d.beginOperation(ctx); err != nil {
		return nil, err
	}
	defer d.work.Done()
	listers, err := abilities[driver.Lister](d, "list its names")
	if err != nil {
		return nil, err
	}
	votes := poll(ctx, d, pollRequest[listing]{
		nodes: d.allNodes,
		send: func(ctx context.Context, i int) (listing, error) {
			out := listing{}
			for e, err := range listers[i].List(ctx, prefix) {
				if err != nil && e.Name == "" {
					return nil, err
				}
				out[e.Name] = vote[driver.Entry]{e, err}
			}
			return out, nil
		},
		decided: d.majorityReadsAll,
	})
	if succeeded(votes) < d.majority {
		return nil, failuresErr(ctx, d, "list", prefix, votes)
	}
	return votes, nil
}
