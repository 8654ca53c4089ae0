package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// The driver forgets names that were unused for the retention time. After its first swap,
// and after about one in tidyEvery from then on, it checks tidyRows names. It begins at a
// random name, so that many short processes together check all names. A process that
// lives on continues where it was, and begins again after the last name. The fence of a
// name has the time of its last grant in it.
type tidying struct {
	swaps  atomic.Uint64
	wanted chan struct{} // holds one while tidying is due
	cursor string        // where run continues; empty: begin at a random name
}

const (
	tidyEvery = 64
	tidyRows  = 64
	lostLife  = time.Minute // a client that has not read a row by then has renewed
)

func (t *tidying) noteSwap() {
	if t.swaps.Add(1)%tidyEvery == 1 {
		select {
		case t.wanted <- struct{}{}:
		default:
		}
	}
}

// run tidies when it is due, in a goroutine of its own, so as not to delay the poller.
func (t *tidying) run(ctx context.Context, s *store) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wanted:
			t.tidySome(ctx, s)
		}
	}
}

// tidySome checks some names. If a statement fails, a later call or another client
// repeats it.
func (t *tidying) tidySome(ctx context.Context, s *store) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	page, err := t.page(ctx, s)
	if err != nil || len(page) == 0 {
		return
	}
	var names, versions []string
	for _, n := range page {
		e, err := locktable.Decode(n.Stored.Value)
		if err == nil && e.Forgettable(n.Now, s.Retention) {
			names, versions = append(names, n.Name), append(versions, strconv.FormatUint(n.Stored.Version, 10))
		}
	}
	if len(names) > 0 {
		// No version occurs twice, so a row that still has its version was not used
		// since.
		_, _ = s.exec(ctx, s.withShortLockWait(fmt.Sprintf("DELETE FROM %s WHERE name IN (%s) AND version IN (%s)", s.names, blobs(names), strings.Join(versions, ", "))))
	}
	_, _ = s.exec(ctx, s.withShortLockWait(fmt.Sprintf("DELETE FROM %s WHERE at < %d", s.lost, page[0].Now.Add(-lostLife))))
}

// page reads the next names.
func (t *tidying) page(ctx context.Context, s *store) (page []optimistic.Named, err error) {
	if t.cursor == "" {
		if t.cursor, err = s.anywhere(ctx); err != nil {
			return nil, err
		}
	}
	if page, err = s.page(ctx, t.cursor, tidyRows); err != nil {
		return nil, err
	}
	if t.cursor = ""; len(page) < tidyRows {
		first, err := s.page(ctx, "", tidyRows-len(page))
		if err != nil {
			return nil, err
		}
		page = append(page, first...)
	}
	if len(page) > 0 {
		t.cursor = page[len(page)-1].Name + "\x00" // no name sorts between the last one and this
	}
	return page, nil
}

// anywhere draws a name, or a prefix of some names. Names fork where their common prefix
// ends. There anywhere draws a byte between the lowest and the highest next byte. It
// takes the drawn byte, or the next greater byte that a name has.
func (s *store) anywhere(ctx context.Context) (string, error) {
	begin := ""
	for range forks {
		first, last, err := s.between(ctx, begin, begin)
		if err != nil || first == last {
			return first, err
		}
		fork := 0
		for fork < len(first) && first[fork] == last[fork] {
			fork++
		}
		low, high := (first + "\x00")[fork], last[fork] // 0 if the first name ends here
		drawn := low + byte(rand.IntN(int(high-low)+1))
		next, _, err := s.between(ctx, strings.TrimSuffix(last[:fork]+string([]byte{drawn}), "\x00"), begin)
		if err != nil || len(next) <= fork {
			return next, err
		}
		begin = next[:fork+1]
	}
	return begin, nil
}

// forks is the number of forks at which anywhere draws a byte. After that many, few
// enough names have the prefix.
const forks = 6

// between returns the first and the last name that have the prefix begin and do not sort
// before from. Both are empty if there is no such name.
func (s *store) between(ctx context.Context, from, begin string) (first, last string, err error) {
	err = s.query(ctx, fmt.Sprintf("SELECT MIN(name), MAX(name) FROM %s WHERE name >= %s AND name < %s", s.names, blob(from), blob(begin+"\xff")),
		func(rows *sql.Rows) error {
			var low, high []byte
			err := rows.Scan(&low, &high)
			first, last = string(low), string(high)
			return err
		})
	return first, last, err
}
