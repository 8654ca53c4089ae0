package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// newPoller makes signals where the server has none: it reads the entries of the names
// that claims of this client wait for, and what the client has lost. One statement does
// that for all of them, which locks nothing and writes nothing.
//
// A grant stands in the entry, so a client that passes a name on writes nothing more than
// that, and what is told of it is never sooner than its commit. It may be late, also by
// far where reads are answered by a replica; a client knows what to make of that.
func newPoller(s *store) *engine.Poller {
	return &engine.Poller{
		Claims: s.claims, Look: s.lookAtClaims, Losses: 500 * time.Millisecond,
		Pace: engine.Growing(5*time.Millisecond, 250*time.Millisecond, 8), // no more than four a second
	}
}

const (
	mostNames   = 512 // are looked at in one statement
	crowd       = 8   // waiters are not many
	mostCrowded = 64  // names are looked at in one statement without their entries
)

// lookAtClaims looks once, and delivers what there is to tell.
func (s *store) lookAtClaims(ctx context.Context, waiting []engine.Claim) error {
	names, byName := engine.ByName(waiting)
	for {
		some := names[:min(len(names), mostNames)] // without any, what was lost is read all the same
		if err := s.lookAtNames(ctx, some, byName); err != nil {
			return err
		}
		if names = names[len(some):]; len(names) == 0 {
			return nil
		}
	}
}

func (s *store) lookAtNames(ctx context.Context, names []string, byName map[string][]engine.Claim) error {
	asked := time.Now()
	seen := map[string]*locktable.Entry{} // nil for a name to which nothing has happened
	var signals []driver.Signal
	var read []string
	err := s.do(ctx, func(ctx context.Context) error {
		signals, read = nil, nil
		for _, name := range names {
			seen[name] = &locktable.Entry{} // if it is not there, or damaged, which their next call says
		}
		return s.query(ctx, s.lookStatement(names, byName), func(rows *sql.Rows) error {
			var kind int
			var name, value []byte
			if err := rows.Scan(&kind, &name, &value); err != nil {
				return err
			}
			switch {
			case kind == 1:
				signal := driver.Signal{Kind: driver.SignalLost}
				copy(signal.Token[:], value)
				signals, read = append(signals, signal), append(read, string(name))
			case value == nil:
				seen[string(name)] = nil
			default:
				if e, err := locktable.Decode(value); err == nil {
					seen[string(name)] = e
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if len(read) > 0 {
		_, _ = s.exec(ctx, "DELETE FROM "+s.lost+" WHERE id IN ("+strings.Join(read, ", ")+")")
	}
	for _, name := range names {
		if e := seen[name]; e != nil {
			signals = append(signals, s.claims.Compare(byName[name], e, asked)...)
		}
	}
	for _, signal := range signals {
		s.deliver(signal)
	}
	return nil
}

// lookStatement asks for what was lost, and for the entries of some names.
func (s *store) lookStatement(names []string, byName map[string][]engine.Claim) string {
	text := "SELECT 1, CAST(id AS CHAR), token FROM " + s.lost + " WHERE inbox = " + blob(s.inbox)
	var whole []string
	crowded := 0
	for _, name := range names {
		same := unchanged(byName[name])
		if same == "" || crowded == mostCrowded {
			whole = append(whole, name)
			continue
		}
		crowded++
		text += " UNION ALL SELECT 0, name, IF(" + same + ", NULL, entry) FROM " + s.names + " WHERE name = " + blob(name)
	}
	if len(whole) > 0 {
		text += " UNION ALL SELECT 0, name, entry FROM " + s.names + " WHERE name IN (" + blobs(whole) + ")"
	}
	return text
}

// unchanged is the condition that nothing has happened to a name that concerns those who
// wait for it: no more was granted, it does not open by itself, and they are still there.
// Then the server keeps the entry to itself, which hundreds of others who keep their
// places change all the time. It is empty where the queue is short.
func unchanged(waiting []engine.Claim) string {
	fence, longest, there := uint64(0), 0, ""
	for _, c := range waiting {
		fence, longest = max(fence, c.Fence), max(longest, c.Queue)
		there += " AND LOCATE(" + blob(c.Token[:]) + ", entry)"
	}
	if longest <= crowd || len(waiting) > crowd {
		return ""
	}
	return fmt.Sprintf("fence = %d AND holders <> '' AND LOCATE('(released)', holders) = 0", fence) + there
}
