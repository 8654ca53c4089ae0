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

// Names that nobody has used for the retention time are forgotten: after its first swap,
// and about one in tidyEvery from then on, a driver looks at tidyRows names. It begins
// anywhere, so that processes that live for one step look at all names together; one that
// lives on goes on where it was, and begins again with the first after the last. When a
// name was last granted stands in its fence.
type tidying struct {
	swaps  atomic.Uint64
	wanted chan struct{} // has room for one
	cursor string        // of the goroutine's own; empty: anywhere
}

const (
	tidyEvery = 64
	tidyRows  = 64
	lostLife  = time.Minute // whoever has not read it by then has renewed
)

func (t *tidying) note() {
	if t.swaps.Add(1)%tidyEvery == 1 {
		select {
		case t.wanted <- struct{}{}:
		default:
		}
	}
}

// run tidies when it is time for that, beside the watch, which is in a hurry.
func (t *tidying) run(ctx context.Context, s *store) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wanted:
			t.once(ctx, s)
		}
	}
}

// once looks at some names. What fails is done next time, or by others.
func (t *tidying) once(ctx context.Context, s *store) {
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
		// Versions are no other name's. They say that nobody has used it since.
		_, _ = s.exec(ctx, s.hasty(fmt.Sprintf("DELETE FROM %s WHERE name IN (%s) AND version IN (%s)", s.names, blobs(names), strings.Join(versions, ", "))))
	}
	_, _ = s.exec(ctx, s.hasty(fmt.Sprintf("DELETE FROM %s WHERE at < %d", s.lost, page[0].Now.Add(-lostLife))))
}

// page reads the names that are next.
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
		t.cursor = page[len(page)-1].Name + "\x00" // nothing is between a name and this
	}
	return page, nil
}

// anywhere draws a name, or what some begin with. Where names fork, each byte that they
// could go on with is as likely as any other, or else the next one that some do go on
// with.
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
		low, high := (first + "\x00")[fork], last[fork] // 0 where the first one ends
		drawn := low + byte(rand.IntN(int(high-low)+1))
		next, _, err := s.between(ctx, strings.TrimSuffix(last[:fork]+string([]byte{drawn}), "\x00"), begin)
		if err != nil || len(next) <= fork {
			return next, err
		}
		begin = next[:fork+1]
	}
	return begin, nil
}

// forks is how many of them are drawn at. After that a page is small enough to be any.
const forks = 6

// between is the first and the last name from one on that begin with something; empty if
// there is none.
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
