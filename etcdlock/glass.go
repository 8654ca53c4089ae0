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
// Such a process may end without a word, by log.Fatal or a signal. So one that comes,
// finds a name held, and hears no tick of anybody turns the glass at once.
//
// The etcd lease begins after the tick was written, and etcd never ends one early; later,
// after an election, it may.

// comes turns a glass if something lasts that was seen, and nobody has ticked since this
// client is there. Where others seem to be open they may be dead, or busy, and then there
// is a tick soon.
func (s *store) comes(ctx context.Context) {
	select {
	case <-s.follows:
	case <-ctx.Done():
		return
	}
	if t, ok := s.clock.current(); !ok || !t.read || s.left() <= 0 {
		return
	}
	if next, resting := s.clock.resting(); s.others.Load() && !resting { // else they were asked
		select {
		case <-next:
		case <-time.After(span):
		case <-ctx.Done():
		}
	}
	if t, ok := s.clock.current(); ok && (t.read || t.own) {
		if r, err := s.txn(ctx, nil, s.glance(), nil); err == nil {
			s.turnGlass(ctx, r)
		}
	}
}

// leaves turns a glass if something lasts that was seen, and nobody else is open.
func (s *store) leaves(ctx context.Context) {
	if s.left() <= 0 {
		return
	}
	r, err := s.txn(ctx, nil, s.glance(), nil)
	if err == nil && r.Responses[2].GetResponseRange().GetCount() <= 1 {
		s.turnGlass(ctx, r)
	}
}

// left is how long anything lasts that was seen.
func (s *store) left() time.Duration {
	now, ok := s.clock.window(time.Now())
	if !ok {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.From.Until(s.lasts)
}

// turnGlass turns a glass that runs for as long as anything lasts that was seen, unless
// one runs that was turned after the last tick. What has passed before it, if that is
// known, is written down in a tick.
func (s *store) turnGlass(ctx context.Context, seen *clientv3.TxnResponse) {
	t, _ := s.clock.current()
	rev, _, runs := glassIn(seen)
	if runs && rev == t.rev {
		return
	}
	if !t.read || t.room <= span || rev == t.rev {
		if s.tick(ctx, rest) != nil {
			return
		}
		if t, _ = s.clock.current(); !t.own {
			return // somebody else is open, and measures
		}
	}
	s.mu.Lock()
	seconds := int64(min(t.is.Until(s.lasts)+time.Second, rest) / time.Second)
	s.mu.Unlock()
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
