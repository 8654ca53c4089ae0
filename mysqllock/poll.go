package mysqllock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// newPoller makes the poller that reads signals from the tables, because the server
// pushes none. One statement reads the entries of the names for which claims of this
// client wait, and the rows of lost leases. It locks nothing and writes nothing. If
// Properties().PushesGrants were false, the root package would poll instead, with an
// Acquire for each waiting goroutine, which writes a place to the disk.
//
// A grant is in the entry. So a client whose release grants the name to a waiter writes
// nothing else, and the waiter never sees the grant before its commit. The waiter may see
// the grant late, even much later if a replica answers the reads; clients handle that.
func newPoller(s *store) *engine.Poller {
	return &engine.Poller{
		Claims: s.claims, Poll: s.pollClaims, LossInterval: 500 * time.Millisecond,
		Pace: engine.GrowingPace(5*time.Millisecond, 250*time.Millisecond, 8), // for the first waiter, at most 250 ms
	}
}

const (
	maxNamesPerPoll   = 512 // the largest number of names that one statement reads
	crowdSize         = 8   // a queue with more waiters is a crowd, see noNewsCondition
	maxCrowdedPerPoll = 64  // the largest number of names for which one statement has this condition

	// maxPolledBytes is the largest number of bytes that a name takes in that statement,
	// with the condition of noNewsCondition for crowdSize claims.
	maxPolledBytes = 2 << 10
)

// pollClaims polls once, and delivers the signals that it finds.
func (s *store) pollClaims(ctx context.Context) error {
	names, byName := engine.ByName(s.claims.Waiting(time.Now()))
	maxNames := min(maxNamesPerPoll, s.namesPerStatement(maxPolledBytes))
	for {
		chunk := names[:min(len(names), maxNames)] // if it is empty, the statement reads only the lost leases
		if err := s.pollNames(ctx, chunk, byName); err != nil {
			return err
		}
		if names = names[len(chunk):]; len(names) == 0 {
			return nil
		}
	}
}

func (s *store) pollNames(ctx context.Context, names []string, byName map[string][]engine.Claim) error {
	asked := time.Now()
	entries := map[string]*locktable.Entry{} // nil for a name without news
	var signals []driver.Signal
	var lostIDs []string
	err := s.do(ctx, func(ctx context.Context) error {
		signals, lostIDs = nil, nil
		for _, name := range names {
			entries[name] = &locktable.Entry{} // if missing or damaged; the next request reports damage
		}
		var kind int
		var name string
		var value []byte
		return s.query(ctx, s.pollStatement(names, byName), []any{&kind, &name, &value}, func() {
			switch {
			case kind == 1:
				signal := driver.Signal{Kind: driver.SignalLost}
				copy(signal.Token[:], value)
				signals, lostIDs = append(signals, signal), append(lostIDs, name)
			case value == nil:
				entries[name] = nil
			default:
				if e, err := locktable.Decode(value); err == nil {
					entries[name] = e
				}
			}
		})
	})
	if err != nil {
		return err
	}
	if len(lostIDs) > 0 {
		_, _ = s.exec(ctx, "DELETE FROM "+s.lostTable+" WHERE id IN ("+strings.Join(lostIDs, ", ")+")")
	}
	for _, name := range names {
		if e := entries[name]; e != nil {
			signals = append(signals, s.claims.Compare(byName[name], e, asked)...)
		}
	}
	for _, signal := range signals {
		s.deliver(signal)
	}
	return nil
}

// pollStatement returns the SQL that reads lost leases, and the entries of some names.
func (s *store) pollStatement(names []string, byName map[string][]engine.Claim) string {
	statement := "SELECT 1, CAST(id AS CHAR), token FROM " + s.lostTable + " WHERE inbox = " + literalOf(s.inbox)
	var uncrowded []string
	crowded := 0
	for _, name := range names {
		condition := noNewsCondition(byName[name])
		if condition == "" || crowded == maxCrowdedPerPoll {
			uncrowded = append(uncrowded, name)
			continue
		}
		crowded++
		statement += " UNION ALL SELECT 0, name, IF(" + condition + ", NULL, entry) FROM " + s.namesTable + " WHERE name = " + literalOf(name)
	}
	if len(uncrowded) > 0 {
		statement += " UNION ALL SELECT 0, name, entry FROM " + s.namesTable + " WHERE name IN (" + literalsOf(uncrowded) + ")"
	}
	return statement
}

// noNewsCondition returns an SQL condition: the name has no news for these waiters,
// because no lease was granted since, it has holders, none of them has released, and the
// waiters are still in the queue. (After a release with a minimum hold, the name opens
// without a change of the row.) If it is true, the server does not send the entry, which
// hundreds of waiters change all the time to renew their places. The condition is empty
// for a short queue, and if this client has many waiters itself.
func noNewsCondition(waiting []engine.Claim) string {
	fence, longest, queued := uint64(0), 0, ""
	for _, c := range waiting {
		fence, longest = max(fence, c.Fence), max(longest, c.Queue)
		queued += " AND LOCATE(" + literalOf(c.Token[:]) + ", entry)"
	}
	if longest <= crowdSize || len(waiting) > crowdSize {
		return ""
	}
	return fmt.Sprintf("fence = %d AND holders <> '' AND LOCATE('(released)', holders) = 0", fence) + queued
}
