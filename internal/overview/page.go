package overview

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// Sort is an order of rows. Equal rows are in byte order of their names.
type Sort string

// The orders.
const (
	ByAttention Sort = "attention" // overdue first, then the longest wait
	ByName      Sort = "name"
	ByHeld      Sort = "held"    // held longest first
	ByLeft      Sort = "left"    // least time left first; unheld names last
	ByWaiters   Sort = "waiters" // most waiters first
)

// Sorts has all orders.
var Sorts = []Sort{ByAttention, ByName, ByHeld, ByLeft, ByWaiters}

// A Query chooses the rows to show.
type Query struct {
	Prefix   string // only names that begin with it
	Sort     Sort   // default: ByAttention
	Reversed bool
	Offset   int // how many rows to skip; a larger one means the last page
	Limit    int // how many to show, at most; 0 means all
}

// A Page is some rows of a view.
type Page struct {
	View   *View
	Query  Query // the query, but with the Offset at which Rows begin
	Rows   []*Row
	Total  int // the number of rows with the prefix
	Counts Counts
}

// Counts are the totals of all rows of a view.
type Counts struct{ Names, Held, Waiters, Overdue, Closed int }

// Names returns the names of the rows.
func (p *Page) Names() []string {
	names := make([]string, len(p.Rows))
	for i, r := range p.Rows {
		names[i] = r.Name
	}
	return names
}

// Page returns the rows of a query.
func (v *View) Page(q Query) Page {
	q.Sort = cmp.Or(q.Sort, ByAttention)
	rows := v.sortedRows(q.Sort)
	if q.Prefix != "" {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return !strings.HasPrefix(r.Name, q.Prefix) })
	}
	if q.Reversed {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	p := Page{View: v, Query: q, Total: len(rows), Counts: v.Counts()}
	limit := q.Limit
	if limit <= 0 {
		limit = max(len(rows), 1)
	}
	last := max(0, (len(rows)-1)/limit*limit)
	p.Query.Offset = min(max(0, q.Offset), last)
	p.Rows = rows[p.Query.Offset:min(len(rows), p.Query.Offset+limit)]
	return p
}

// pageCache has results that are computed from a view on demand, once.
type pageCache struct {
	mu     sync.Mutex // protects all below
	orders map[Sort][]*Row
	counts *Counts
	blocks *Blocks
}

// sortedRows returns all rows in an order. Callers must not change them.
func (v *View) sortedRows(by Sort) []*Row {
	if by == ByName {
		return v.Rows
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if rows := v.orders[by]; rows != nil {
		return rows
	}
	keys := make([]sortKey, len(v.Rows))
	for i, r := range v.Rows {
		keys[i] = v.sortKey(r, by)
	}
	slices.SortStableFunc(keys, func(a, b sortKey) int {
		return cmp.Or(cmp.Compare(b.first, a.first), cmp.Compare(b.second, a.second))
	})
	rows := make([]*Row, len(keys))
	for i, k := range keys {
		rows[i] = k.row
	}
	if v.orders == nil {
		v.orders = map[Sort][]*Row{}
	}
	v.orders[by] = rows
	return rows
}

// A sortKey is a row and the values that sort it: the row with the greatest comes first.
type sortKey struct {
	row           *Row
	first, second time.Duration
}

func (v *View) sortKey(r *Row, by Sort) sortKey {
	k := sortKey{row: r}
	switch by {
	case ByHeld:
		k.first = v.Held(r, r.At)
	case ByLeft:
		k.first = -1 << 62
		if len(r.Holders) > 0 {
			firstToExpire := slices.MinFunc(r.Holders, func(a, b pawl.Holder) int { return cmp.Compare(a.ExpiresIn, b.ExpiresIn) })
			k.first = -(r.At.Sub(v.ScannedAt) + firstToExpire.ExpiresIn)
		}
	case ByWaiters:
		k.first = time.Duration(len(r.Waiters))
	case ByAttention, ByName:
		if r.AnyOverdue() {
			k.first = 1
		}
		k.second = v.Waits(r, r.At)
	}
	return k
}

// Counts returns the totals, which it computes once.
func (v *View) Counts() Counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counts == nil {
		c := &Counts{Names: len(v.Rows)}
		for _, r := range v.Rows {
			c.Held += len(r.Holders)
			c.Waiters += len(r.Waiters)
			if r.AnyOverdue() {
				c.Overdue++
			}
			if r.ClosedFor > 0 {
				c.Closed++
			}
		}
		v.counts = c
	}
	return *v.counts
}
