package mysqllock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable/swap"
)

// lostRetention is the age at which a row of a lost lease is deleted. By then, its client
// has read the row, or detected the loss with a renewal.
const lostRetention = time.Minute

// tidyPage deletes some names that were unused for the retention time, see
// sqlswap.Tidier. It begins at a random name, so that many short processes together check
// all names. A long process continues after the last checked name, and begins again after
// the last name.
func (s *store) tidyPage(ctx context.Context) {
	page, err := s.nextPage(ctx)
	if err != nil || len(page) == 0 {
		return
	}
	var names, versions []string
	for _, n := range sqlswap.Forgettable(page, s.Retention) {
		names, versions = append(names, n.Name), append(versions, strconv.FormatUint(n.Stored.Version, 10))
	}
	if len(names) > 0 {
		// Versions are unique, so a row that still has its version was not changed since.
		_, _ = s.exec(ctx, s.withShortLockWait(fmt.Sprintf("DELETE FROM %s WHERE name IN (%s) AND version IN (%s)", s.namesTable, literalsOf(names), strings.Join(versions, ", "))))
	}
	_, _ = s.exec(ctx, s.withShortLockWait(fmt.Sprintf("DELETE FROM %s WHERE at < %d", s.lostTable, page[0].Now.Add(-lostRetention))))
}

// nextPage reads the names that tidyPage checks.
func (s *store) nextPage(ctx context.Context) (page []swap.Named, err error) {
	if s.cursor == "" {
		if s.cursor, err = s.randomName(ctx); err != nil {
			return nil, err
		}
	}
	if page, err = s.page(ctx, s.cursor, sqlswap.TidyRows); err != nil {
		return nil, err
	}
	if s.cursor = ""; len(page) < sqlswap.TidyRows {
		first, err := s.page(ctx, "", sqlswap.TidyRows-len(page))
		if err != nil {
			return nil, err
		}
		page = append(page, first...)
	}
	if len(page) > 0 {
		s.cursor = sqlswap.Next(page[len(page)-1].Name)
	}
	return page, nil
}

// randomName returns a random name, or a prefix of some names. Names fork where their
// common prefix ends. At each fork, randomName draws a byte between the lowest and
// the highest next byte, and continues with the drawn byte, or the next greater byte that
// a name has.
func (s *store) randomName(ctx context.Context) (string, error) {
	prefix := ""
	for range maxForks {
		first, last, err := s.nameRange(ctx, prefix, prefix)
		if err != nil || first == last {
			return first, err
		}
		fork := 0
		for fork < len(first) && first[fork] == last[fork] {
			fork++
		}
		low, high := (first + "\x00")[fork], last[fork] // low is 0 if the first name ends here
		drawn := low + byte(rand.IntN(int(high-low)+1))
		next, _, err := s.nameRange(ctx, strings.TrimSuffix(last[:fork]+string([]byte{drawn}), "\x00"), prefix)
		if err != nil || len(next) <= fork {
			return next, err
		}
		prefix = next[:fork+1]
	}
	return prefix, nil
}

// maxForks is the number of forks at which randomName draws a byte. After that, few names
// have the prefix.
const maxForks = 6

// nameRange returns the first and the last name that have this prefix and do not sort
// before from. Both are empty if there is no such name.
func (s *store) nameRange(ctx context.Context, from, prefix string) (first, last string, err error) {
	var low, high []byte
	err = s.queryRow(ctx, fmt.Sprintf("SELECT MIN(name), MAX(name) FROM %s WHERE name >= %s AND name < %s", s.namesTable, literalOf(from), literalOf(prefix+"\xff")), &low, &high)
	return string(low), string(high), err
}
