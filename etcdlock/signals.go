package etcdlock

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
)

// A client receives its signals in the key of its inbox, which it watches. A step of
// another client writes them into the key. The key is on an etcd lease of the client. So
// etcd deletes the key after the client is gone, and other clients then write no signals.
// No other key is on that lease.

const (
	inboxTTLSeconds   = 15                     // the TTL of an inbox's etcd lease
	backgroundTimeout = 5 * time.Second        // the timeout of the driver's own requests
	closeTimeout      = 2 * time.Second        // the timeout of the driver's requests at Close
	resubscribePause  = 300 * time.Millisecond // the pause after a watch or an etcd lease failed
)

// waitFor waits for an event, until ctx ends.
func waitFor(ctx context.Context, event <-chan struct{}) {
	select {
	case <-event:
	case <-ctx.Done():
	}
}

// run keeps the inbox, its watch, and the watch on the clock, until the client is closed.
func (s *store) run() {
	retry := func() { s.deliver(driver.Signal{Kind: driver.SignalRetry}) } // earlier signals are lost
	s.running.Go(func() { s.subscribe(s.watchInbox, s.inboxTried, retry) })
	s.running.Go(func() { s.subscribe(s.watchClock, s.clockTried, func() {}) })
	s.running.Go(func() { s.clock.Run(s.life, s.readClock, s.tick) })
}

// subscribe keeps a watch until the client is closed, and calls retry each time that the
// watch begins. When the watch has begun or failed for the first time, it closes tried.
func (s *store) subscribe(run func(ctx context.Context, subscribed func()), tried chan struct{}, retry func()) {
	closeTried := sync.OnceFunc(func() { close(tried) })
	defer closeTried()
	engine.Subscription{
		Run: run,
		StateChanged: func(up bool) {
			if closeTried(); up {
				retry()
			}
		},
		FirstPause: resubscribePause, LongestPause: resubscribePause,
	}.Keep(s.life)
}

// watchClock watches the clock until the watch fails.
func (s *store) watchClock(ctx context.Context, subscribed func()) {
	s.watch(ctx, s.clockKey(), func() bool {
		if s.readClock(ctx) != nil {
			return false
		}
		s.running.Go(func() { s.requestTick(ctx); subscribed() })
		return true
	}, func(e *clientv3.Event) bool {
		if string(e.Kv.GetKey()) == s.tickRequestKey() {
			s.clock.NoteRequest()
		} else if t, err := ticked.Parse(string(e.Kv.GetValue()), e.Kv.GetModRevision()); err == nil && e.Type == clientv3.EventTypePut {
			s.clock.Learn(t)
		}
		return true
	}, clientv3.WithPrefix())
}

// watchInbox creates the inbox, and delivers its signals until its watch or etcd lease
// fails.
func (s *store) watchInbox(ctx context.Context, subscribed func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.watch(ctx, s.inboxKey(s.id), func() bool {
		alive, err := s.makeInbox(ctx)
		if err != nil {
			return false
		}
		s.running.Go(func() {
			for range alive { // ends when the etcd lease is gone, and the key with it
			}
			cancel()
		})
		subscribed()
		return true
	}, func(e *clientv3.Event) bool {
		for line := range strings.SplitSeq(string(e.Kv.GetValue()), "\n") {
			if signal, ok := engine.DecodeSignal(line); ok {
				s.deliver(signal)
			}
		}
		return e.Type != clientv3.EventTypeDelete
	})
}

// makeInbox creates the key of the inbox on a new etcd lease. If the key exists,
// makeInbox moves it to the new lease; the old lease expires by itself.
func (s *store) makeInbox(ctx context.Context) (alive <-chan *clientv3.LeaseKeepAliveResponse, err error) {
	brief, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), backgroundTimeout)
	defer cancel()
	lease, err := s.client.Grant(brief, inboxTTLSeconds)
	if err != nil {
		return nil, err
	}
	s.inboxLease.Store(int64(lease.ID))
	if _, err := s.client.Put(brief, s.inboxKey(s.id), "", clientv3.WithLease(lease.ID)); err != nil {
		return nil, err
	}
	return s.client.KeepAlive(ctx, lease.ID)
}

func (s *store) removeInbox(ctx context.Context) {
	if lease := s.inboxLease.Load(); lease != 0 {
		_, _ = s.client.Revoke(ctx, clientv3.LeaseID(lease))
	}
}

// maxInboxesPerStep is the largest number of inboxes into which a step writes signals.
// Other waiters get no signal, and retry later. etcd accepts 128 operations in a
// request, and a step needs some of them for the values of driver.MaxAll names.
const maxInboxesPerStep = 60

// signalOps returns the operations that write a step's signals into existing inboxes.
func (s *store) signalOps(all []locktable.Signal) (ops []clientv3.Op) {
	var order []string
	lines := map[string][]string{}
	for _, signal := range all {
		if lines[signal.Inbox] == nil {
			order = append(order, signal.Inbox)
		}
		lines[signal.Inbox] = append(lines[signal.Inbox], engine.EncodeSignal(signal.Signal))
	}
	for _, id := range order[:min(len(order), maxInboxesPerStep)] {
		key := s.inboxKey(id)
		ops = append(ops, clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), ">", 0)},
			[]clientv3.Op{clientv3.OpPut(key, strings.Join(lines[id], "\n"), clientv3.WithIgnoreLease())}, nil))
	}
	return ops
}
