package etcdlock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
)

// tidy deletes some names that were not used for the retention time, see sqlswap.Tidier.
// A key stores the next name to examine, so that many short processes together examine
// all names. After the last name the clients pause.
func (s *store) tidy(ctx context.Context) {
	w, err := s.Time(ctx)
	if err != nil {
		return
	}
	r, err := s.client.Get(ctx, s.tidyKey())
	if err != nil {
		return
	}
	from, until := s.entryKey(""), locktable.Instant(0)
	if len(r.Kvs) > 0 {
		first, name, _ := strings.Cut(string(r.Kvs[0].GetValue()), " ")
		i, _ := strconv.ParseInt(first, 10, 64)
		from, until = s.entryKey(name), locktable.Instant(i)
	}
	if w.From < until {
		return
	}
	names, err := s.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.entryKey(""))), clientv3.WithLimit(sqlswap.TidyRows))
	if err != nil {
		return
	}
	t, _ := s.clock.Current()
	var ops []clientv3.Op
	next, until := "", w.From.Add(s.retention/24)
	for _, kv := range names.Kvs {
		key := string(kv.GetKey())
		if names.More {
			next, until = strings.TrimPrefix(key, s.entryKey(""))+"\x00", 0
		}
		// Keep an entry that was written under this tick, because it may make a late
		// claim fail, see swap.DelayedWriter. Under a later tick a late claim always
		// fails.
		e, err := locktable.Decode(kv.GetValue())
		if e != nil {
			e.WallClock = w.WallClock
		}
		if err == nil && kv.GetModRevision() < t.Rev && e.Forgettable(t.Instant, s.retention) {
			ops = append(ops, clientv3.OpTxn(
				[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kv.GetModRevision())},
				[]clientv3.Op{clientv3.OpDelete(key)}, nil))
		}
	}
	ops = append(ops, clientv3.OpPut(s.tidyKey(), fmt.Sprintf("%d %s", until, next)))
	_, _ = s.txn(ctx, []clientv3.Cmp{s.lastTickIs(t)}, ops, nil)
}
