package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
)

// tick writes the next tick, unless another client has written one.
func (s *store) tick(ctx context.Context, room time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	t, ok := s.clock.Current()
	if !ok {
		return s.readClock(ctx)
	}
	next := s.clock.Next(t, t.ReadingAt(time.Now()), room)
	_, err := s.txnAtTick(ctx, []clientv3.Cmp{s.lastTickIs(t)}, nil, nil, next)
	return err
}

// txnAtTick runs a transaction with conditions on the last tick. If they are true, it
// also writes next, unless that is zero. If they are false, it learns the last tick. If
// the returned answer is nil, the outcome is unknown.
func (s *store) txnAtTick(ctx context.Context, conditions []clientv3.Cmp, then, otherwise []clientv3.Op, next ticked.Tick) (*clientv3.TxnResponse, error) {
	if next.Value != "" {
		then = append(then, clientv3.OpPut(s.clockKey(), next.Value))
	}
	r, err := s.txn(ctx, conditions, then, append(otherwise, s.getClock()))
	switch {
	case err != nil:
		return nil, err
	case !r.Succeeded:
		if err = s.learnFrom(r); err != nil {
			s.clock.Invalidate()
		}
	case next.Value != "":
		next.Rev = r.Header.Revision
		s.clock.Learn(next)
	}
	return r, err
}

func (s *store) lastTickIs(t ticked.Tick) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.clockKey()), "=", t.Value)
}

// lastTickIsBetween returns the condition that the last tick is t, or an active tick
// after t and no later than last. Only a restored snapshot can bring back a tick before
// t.
func (s *store) lastTickIsBetween(t ticked.Tick, last locktable.Instant) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(s.clockKey()), ">", ticked.Prefix(t.Instant, t.Room)),
		clientv3.Compare(clientv3.Value(s.clockKey()), "<", ticked.Prefix(last+1, ticked.MaxAdvance)),
	}
}

func (s *store) getClock() clientv3.Op { return clientv3.OpGet(s.clockKey()) }

// learnFrom learns the tick from an answer whose last part has the clock's key.
func (s *store) learnFrom(r *clientv3.TxnResponse) error {
	kvs := r.Responses[len(r.Responses)-1].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return errNoClock
	}
	t, err := ticked.Parse(string(kvs[0].GetValue()), kvs[0].GetModRevision())
	if err != nil {
		return &engine.ConfigError{Problem: err.Error(), Hint: "delete it while no lock is held, and all keys that begin with " + strconv.Quote(s.prefix+"//")}
	}
	t.WasRead = true
	s.clock.Learn(t)
	return nil
}

var errNoClock = errors.New("the clock's key is gone")

// readClock reads the clock, and creates one if there is neither a clock nor an entry. If
// there are entries but no clock, an operator has deleted the clock. Then readClock
// fails, because the ends of the leases are unknown.
func (s *store) readClock(ctx context.Context) error {
	r, err := s.txn(ctx, nil, append(s.getTimer(), s.getClock()), nil)
	if err != nil {
		return err
	}
	s.hasPeers.Store(r.Responses[2].GetResponseRange().GetCount() > 0)
	err = s.learnFrom(r)
	if errors.Is(err, errNoClock) {
		return s.beginClock(ctx)
	}
	if rev, length, runs := parseTimer(r); err == nil && !runs {
		s.clock.RaiseAge(rev, length)
	}
	return err
}

// requestTick asks the clients that were already open to write a tick, if the clock is
// idle. A client that has just opened does not know the age of the last tick, so its own
// tick would lose that time.
func (s *store) requestTick(ctx context.Context) {
	next, idle := s.clock.Idle()
	if !idle || !s.hasPeers.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ticked.PeerTimeout)
	defer cancel()
	if _, err := s.client.Put(clientv3.WithRequireLeader(ctx), s.tickRequestKey(), ""); err == nil {
		waitFor(ctx, next)
	}
}

func (s *store) beginClock(ctx context.Context) error {
	isEmpty := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.clockKey()), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(s.entryKey("")), "=", 0).WithPrefix(),
	}
	first := s.clock.Next(ticked.Tick{}, locktable.At(time.Now()), ticked.MaxAdvance)
	_, err := s.txnAtTick(ctx, isEmpty, nil, nil, first)
	if errors.Is(err, errNoClock) {
		return &engine.ConfigError{
			Problem: fmt.Sprintf("the key %q is missing, and there are locks: it was deleted", s.clockKey()),
			Hint:    fmt.Sprintf("stop all that use these locks, then delete all keys that begin with %q", s.prefix+"//"),
		}
	}
	return err
}
