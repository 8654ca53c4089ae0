package etcdlock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Where no client is open nobody measures how much time passes, and the clock stands
// still. So a client that leaves while it knows of a lease or a place that lasts turns a
// glass: a key that hangs on an etcd lease, and another one that says for how long, and
// since which tick. If the first is gone when the next client comes, and no tick has come
// since, then so much has passed at least. A process that tries, fails and ends, again
// and again, sees a dead holder end so.
//
// The etcd lease begins after the tick was written, and etcd never ends one early; later,
// after an election, it may.

// turnGlass leaves a glass that runs for as long as anything that was seen lasts.
func (s *store) turnGlass(ctx context.Context) {
	now, ok := s.clock.window(time.Now())
	if !ok {
		return
	}
	s.mu.Lock()
	left := now.From.Until(s.lasts)
	s.mu.Unlock()
	if left <= 0 {
		return
	}
	r, err := s.txn(ctx, nil, s.glance(), nil)
	if err != nil || r.Responses[2].GetResponseRange().GetCount() > 1 {
		return // somebody else measures
	}
	last, _ := s.clock.current()
	if rev, _, sand := glassIn(r); sand && rev == last.rev {
		return // there is one already
	}
	seconds := int64(min(left+time.Second, rest) / time.Second)
	if s.tick(ctx, rest) != nil {
		return
	}
	t, _ := s.clock.current()
	if !t.own {
		return // somebody else is open, and measures
	}
	lease, err := s.client.Grant(ctx, seconds)
	if err != nil {
		return
	}
	_, _ = s.txn(ctx, []clientv3.Cmp{s.stands(t)}, []clientv3.Op{
		clientv3.OpPut(s.glassKey(), fmt.Sprintf("%d %d", t.rev, seconds)),
		clientv3.OpPut(s.sandKey(), "", clientv3.WithLease(lease.ID)),
	}, nil)
}

// glance reads the glass, and how many clients are open.
func (s *store) glance() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.glassKey()), clientv3.OpGet(s.sandKey()),
		clientv3.OpGet(s.inboxKey(""), clientv3.WithPrefix(), clientv3.WithCountOnly()),
	}
}

// glassIn is which tick a glass was turned after, for how long, and whether it runs.
func glassIn(r *clientv3.TxnResponse) (rev int64, lasts time.Duration, runs bool) {
	glass, sand := r.Responses[0].GetResponseRange().GetKvs(), r.Responses[1].GetResponseRange().GetKvs()
	if len(glass) == 0 {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(string(glass[0].GetValue()), " ")
	rev, err1 := strconv.ParseInt(first, 10, 64)
	seconds, err2 := strconv.ParseInt(second, 10, 64)
	if err1 != nil || err2 != nil || seconds <= 0 || seconds > int64(rest/time.Second) {
		return 0, 0, false
	}
	return rev, time.Duration(seconds) * time.Second, len(sand) > 0
}
