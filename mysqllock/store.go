package mysqllock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// store is the swap.Store over two tables. One has a row for each name. The other has a
// row for each broken lease, to notify the holder's client.
type store struct {
	*server
	inbox string
	clock swap.Clock

	claims  *engine.Claims
	deliver func(driver.Signal)
	tidier  sqlswap.Tidier
	cursor  string          // the name at which tidying continues; empty: begin at a random name
	life    context.Context // ends at Close
	end     context.CancelFunc
	running engine.Background
}

// Close implements swap.Store.
func (s *store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.end()
	s.running.Close()
	if s.ownPoolSize > 0 {
		return s.db.Close()
	}
	return nil
}

// DelaysWrites implements swap.DelayedWriter. The statement checks the clock after it has
// locked the row, but a backup, a disk or a replica may delay the commit. Until then,
// readers do not see the change.
func (s *store) DelaysWrites() {}

// serverTime is the server's time at its evaluation, in microseconds since 1970.
// UTC_TIMESTAMP is constant during a statement. With it, a statement that has waited a
// minute for the lock of a row could grant a claim that its client gave up. SYSDATE is
// not constant, but it is in the session's time zone, with daylight saving. So serverTime
// adds to UTC_TIMESTAMP the time that has passed since the beginning of the statement,
// according to SYSDATE. If daylight saving moves the clock during a statement, serverTime
// is off by an hour, and no window contains it.
const serverTime = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)))"

// Load implements swap.Store.
func (s *store) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	found := make(map[string]swap.Stored, len(names))
	var name string
	var version uint64
	var value []byte
	err := s.do(ctx, func(ctx context.Context) error {
		for chunk := range slices.Chunk(names, s.namesPerStatement(maxNameBytes)) {
			err := s.query(ctx, "SELECT name, version, entry FROM "+s.namesTable+" WHERE name IN ("+literalsOf(chunk)+")",
				[]any{&name, &version, &value}, func() { found[name] = sqlswap.StoredOf(version, value) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	all := make([]swap.Stored, len(names))
	for i, name := range names {
		all[i] = found[name]
	}
	return all, err
}

// Time implements swap.Store.
func (s *store) Time(ctx context.Context) (swap.Window, error) {
	return s.clock.Ask(ctx, func(ctx context.Context) error { return s.do(ctx, s.askTime) })
}

// askTime asks the server for its time. It takes a connection first, because connecting
// or waiting for the pool is not part of the round trip.
func (s *store) askTime(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var now locktable.Instant
	sent := time.Now()
	if err := conn.QueryRowContext(ctx, "SELECT "+serverTime).Scan(&now); err != nil {
		return err
	}
	s.clock.Learn(now, sent, time.Now())
	return nil
}

// afterSwap notifies other clients of leases that a swap has broken, with rows in the
// table lost. A row is only a hint: a client that misses it detects the loss with its
// next renewal. Grants need no notification, because waiters read the entry, see
// newPoller.
func (s *store) afterSwap(ctx context.Context, w swap.Swap, r swap.Swapped) {
	if !r.Done {
		return
	}
	var rows []string
	for _, signal := range w.Signals {
		if signal.Kind == driver.SignalLost {
			rows = append(rows, fmt.Sprintf("(%s, %s, %d)", literalOf(signal.Inbox), literalOf(signal.Token[:]), w.Window.From))
		}
	}
	if len(rows) > 0 {
		_, _ = s.exec(ctx, "INSERT INTO "+s.lostTable+" (inbox, token, at) VALUES "+strings.Join(rows, ", "))
	}
	s.tidier.CountSwap()
}

// Scan implements swap.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[swap.Named, error] {
	return sqlswap.Scan(prefix, func(from string, n int) ([]swap.Named, error) { return s.page(ctx, from, n) },
		func(row swap.Named) string { return row.Name })
}

// page reads up to n entries, beginning at the name from.
func (s *store) page(ctx context.Context, from string, n int) (page []swap.Named, err error) {
	statement := fmt.Sprintf("SELECT name, version, entry, %s FROM %s WHERE name >= %s ORDER BY name LIMIT %d", serverTime, s.namesTable, literalOf(from), n)
	var row swap.Named
	err = s.do(ctx, func(ctx context.Context) error {
		page = nil
		return s.query(ctx, statement, []any{&row.Name, &row.Stored.Version, &row.Stored.Value, &row.Now}, func() {
			row.Stored = sqlswap.StoredOf(row.Stored.Version, row.Stored.Value)
			page = append(page, row)
		})
	})
	return page, err
}

// Properties implements swap.Store.
func (s *store) Properties() driver.Properties {
	return driver.Properties{
		Backend:       "mysql",
		Location:      s.Location,
		Clock:         driver.ClockServer,
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        minTTL,
		PushesGrants:  true, // by polling, see newPoller
	}
}

// minTTL is a multiple of the duration of a commit.
const minTTL = 50 * time.Millisecond
