package quorumlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// Diagnose implements driver.Diagnoser. It runs each node's own doctor, and compares the
// nodes: how many can be reached, how far their clocks are apart, and whether two are the
// same server. To compare them, it holds a name of its own on each node for a moment, as
// a reader. If it reaches no majority, it returns a finding, not an error.
func (d *quorum) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := d.beginOperation(ctx); err != nil {
		return nil, err
	}
	defer d.work.Done()
	nodesCtx, cancel := context.WithTimeout(ctx, nodeTimeLimit(ctx))
	defer cancel()
	defer context.AfterFunc(d.requestsCtx, cancel)()

	id := rand.Text()
	all := make([]*visit, len(d.nodes))
	for i, n := range d.nodes {
		all[i] = &visit{node: n, mark: fmt.Sprintf("%s %d", id, i), token: driver.NewToken()}
	}
	each := func(f func(v *visit)) {
		var nodes sync.WaitGroup
		for _, v := range all {
			nodes.Go(func() { f(v) })
		}
		nodes.Wait()
	}
	each(func(v *visit) { d.visit(nodesCtx, v) })
	each(func(v *visit) { v.readHolders(nodesCtx) }) // from here on, all visits hold the name
	each(func(v *visit) {
		if v.hasTime {
			d.endVisit(v)
		} else { // release the claim in the background, because the node may have granted it
			d.work.Go(func() { d.endVisit(v) })
		}
	})

	if d.isClosed() {
		return nil, driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := slices.Concat(d.missingVotes(all), clockFindings(all), sameServers(all), d.sizeFindings(), d.lackingAbilities(all), nodeFindings(all))
	engine.SortFindings(found)
	return found, nil
}

// nodeTimeLimit returns the time limit for the nodes' answers. It is a part of the time
// until ctx ends, so that Diagnose can report the nodes that have not answered.
func nodeTimeLimit(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(time.Until(deadline)*4/5, backgroundRequestLimit)
	}
	return backgroundRequestLimit
}

// A visit is the doctor's view of one node.
type visit struct {
	*node
	mark  string // identifies the claim of this visit
	token driver.Token

	err        error // why the node cannot vote
	found      []driver.Finding
	hasTime    bool
	ahead      time.Duration // the lead of the node's clock over ours, exact to within clockError
	clockError time.Duration
	seenMarks  []string // of the visits that hold doctorName on this node
}

const doctorName = "pawl doctor" // the name that the doctor holds on each node

func (v *visit) name() string { return fmt.Sprintf("node %d (%s)", v.number, v.Properties().Backend) }

func (d *quorum) visit(ctx context.Context, v *visit) {
	sent := time.Now()
	g, err := d.sendClaim(ctx, v.number-1, driver.Claim{
		Name: doctorName, Token: v.token, Owner: driver.Owner{Client: v.mark}, Weight: 1, Limit: driver.Unlimited, TTL: backgroundRequestLimit,
	})
	took := time.Since(sent)
	switch {
	case err == nil: // without a MinFence, a fence is the node's time
		v.hasTime, v.ahead, v.clockError = true, time.UnixMicro(int64(g.Fence)).Sub(sent.Add(took/2)), took/2
	case !isHeld(err):
		v.err = err
		return
	}
	if doctor, ok := driver.As[driver.Diagnoser](v.Driver); ok {
		v.found, v.err = doctor.Diagnose(ctx)
	}
}

func (v *visit) readHolders(ctx context.Context) {
	if !v.hasTime {
		return
	}
	if e, err := v.Inspect(ctx, doctorName); err == nil {
		for _, h := range e.Holders {
			v.seenMarks = append(v.seenMarks, h.Owner.Client)
		}
	}
}

// endVisit releases the name on the node. If the node cannot be reached, its lease
// expires after the TTL.
func (d *quorum) endVisit(v *visit) {
	ctx, cancel := context.WithTimeout(d.requestsCtx, time.Second)
	defer cancel()
	_ = d.releaseOnNode(ctx, v.number-1, driver.LeaseRef{Name: doctorName, Token: v.token, TTL: backgroundRequestLimit}, false)
}

// missingVotes returns findings about nodes that do not vote, because they refuse
// requests or cannot be reached.
func (d *quorum) missingVotes(all []*visit) (found engine.Findings) {
	var silent []string
	noVote := 0
	for _, v := range all {
		if v.err == nil {
			continue
		}
		noVote++
		if e, ok := errors.AsType[*driver.Error](v.err); ok && e.Permanent {
			advice := cmp.Or(e.Hint, "see the server's documentation for this error: a retry will not help")
			found.Add(true, driver.SeverityError, v.name(), "it refuses requests, and has no vote: "+bareText(v.err), advice)
			continue
		}
		silent = append(silent, v.name()+": "+bareText(v.err))
	}
	if noVote == 0 {
		return nil
	}
	severity := driver.SeverityWarning
	detail := fmt.Sprintf("%d of %d nodes have no vote now, %d are needed", noVote, len(all), d.majority)
	switch spare := len(all) - noVote - d.majority; {
	case spare < 0:
		severity = driver.SeverityError
		detail += ": no lease is granted, and held leases are lost"
	case spare == 0:
		detail += ": no other node may fail"
	default:
		detail += fmt.Sprintf(": no more than %d others may fail", spare)
	}
	if len(silent) > 0 {
		detail += ". Unreachable: " + strings.Join(silent, "; ")
	}
	found.Add(true, severity, "majority", detail, "restart them; a node that lost its data must first stay away for the longest TTL")
	return found
}

// nodeFindings returns the findings of the nodes' own doctors. If several nodes have the
// same finding, it is listed once, with the names of the nodes.
func nodeFindings(all []*visit) (found []driver.Finding) {
	var nodes []string // the nodes of each finding
	for _, v := range all {
		for _, f := range v.found {
			if i := slices.Index(found, f); i >= 0 {
				nodes[i] += ", " + v.name()
			} else {
				found, nodes = append(found, f), append(nodes, v.name())
			}
		}
	}
	for i := range found {
		found[i].Subject = nodes[i] + ": " + found[i].Subject
	}
	return found
}

// clockFindings compares the fastest clock with the slowest.
func clockFindings(all []*visit) []driver.Finding {
	timed := slices.DeleteFunc(slices.Clone(all), func(v *visit) bool { return !v.hasTime })
	if len(timed) == 0 {
		return nil
	}
	byClock := func(v, w *visit) int { return cmp.Compare(v.ahead, w.ahead) }
	fast, slow := slices.MaxFunc(timed, byClock), slices.MinFunc(timed, byClock)
	if fast.ahead-slow.ahead-fast.clockError-slow.clockError <= driver.MaxLead {
		return nil
	}
	difference := (fast.ahead - slow.ahead).Round(time.Millisecond)
	return engine.Found(driver.SeverityWarning, "clocks",
		fmt.Sprintf("%s is %v ahead of %s: nodes grant different fences, and agree on one in a second round trip; "+
			"and a node that lost its data must stay away longer by this difference", fast.name(), difference, slow.name()),
		"set the clocks by NTP")
}

// sameServers returns findings about nodes that are the same server: each shows the
// other's claim.
func sameServers(all []*visit) (found engine.Findings) {
	for i, v := range all {
		for _, w := range all[i+1:] {
			found.Add(slices.Contains(v.seenMarks, w.mark) && slices.Contains(w.seenMarks, v.mark), driver.SeverityError, v.name()+" and "+w.name(),
				"they are the same server, which votes twice: when it fails, two votes are lost, and it may be a majority alone",
				"name servers that share nothing, each once")
		}
	}
	return found
}

func (d *quorum) sizeFindings() []driver.Finding {
	n := len(d.nodes)
	switch {
	case n == 1:
		return engine.Found(driver.SeverityInfo, "nodes", "a quorum of one node survives no loss", "use 3 or 5")
	case n%2 == 0:
		detail := fmt.Sprintf("%d nodes survive the loss of %d, as %d do, and split a vote more often", n, n-d.majority, n-1)
		return engine.Found(driver.SeverityInfo, "nodes", detail, "use 3 or 5")
	}
	return nil
}

// lackingAbilities returns findings about abilities that the quorum lacks because one
// node lacks them. It skips nodes that do not answer, because their drivers may not know
// their servers yet.
func (d *quorum) lackingAbilities(all []*visit) (found engine.Findings) {
	answering := slices.DeleteFunc(slices.Clone(all), func(v *visit) bool { return v.err != nil })
	pushes := slices.ContainsFunc(answering, func(v *visit) bool { return v.Properties().PushesGrants })
	minTTL := d.Properties().MinTTL
	for _, v := range answering {
		p := v.Properties()
		_, lists := driver.As[driver.Lister](v.Driver)
		_, breaks := driver.As[driver.LeaseBreaker](v.Driver)
		addIf := func(bad bool, detail, advice string) {
			found.Add(bad, driver.SeverityInfo, v.name(), detail, advice)
		}
		addIf(p.MinTTL > minQuorumTTL && p.MinTTL == minTTL,
			fmt.Sprintf("the shortest TTL of the quorum is %v, because of this node", p.MinTTL), "use this TTL or more, or another backend")
		addIf(!p.PushesGrants && pushes,
			"it does not push, so all waiters poll, although other nodes push", "use nodes that all push, for shorter waits")
		addIf(!lists, "it cannot list its names, so the quorum cannot", "use another backend if you list names")
		addIf(!breaks, "it cannot break a lease, so the quorum cannot", "use another backend if you break leases")
	}
	return found
}
