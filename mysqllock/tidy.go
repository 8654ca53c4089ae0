package mysqllock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// Names that nobody has used for the retention time are forgotten: about one swap in
// tidyEvery has the watch look at tidyRows names, from where it stands, which is anywhere
// at first. After the last name it begins again with the first. When a name was last
// granted stands in its fence.
type tidying struct {
	swaps  atomic.Uint64
	wanted atomic.Bool
	cursor string
}

const (
	tidyEvery = 64
	tidyRows  = 64
	lostLife  = time.Minute // whoever has not read it by then has renewed
)

func (t *tidying) note() {
	if t.swaps.Add(1)%tidyEvery == 1 {
		t.wanted.Store(true)
	}
}

// now tidies, if it is time for that. What fails is done next time, or by others.
func (t *tidying) now(ctx context.Context, s *store) {
	if !t.wanted.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if t.cursor == "" {
		t.cursor = string(' ' + rand.N('~'-' '))
	}
	page, err := s.page(ctx, t.cursor, tidyRows)
	if err != nil {
		return
	}
	for _, n := range page {
		e, err := locktable.Decode(n.Stored.Value)
		if err != nil || !e.Forgettable(n.Now, s.Retention) {
			continue
		}
		// Its version says that nobody has used it since.
		_, _ = s.exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE name = %s AND version = %d", s.names, text(n.Name), n.Stored.Version))
	}
	if t.cursor = " "; len(page) == tidyRows {
		t.cursor = page[tidyRows-1].Name + "\x00"
	}
	_, _ = s.exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE at < %s - %d", s.lost, serverTime, lostLife/time.Microsecond))
}
