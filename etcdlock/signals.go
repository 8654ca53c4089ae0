package etcdlock

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// An inbox receives the signals of a client. A step of another client writes them into
// the key of the inbox, which the client watches. The key is on an etcd lease of the
// client, so etcd deletes it after the client is gone; other clients write signals only
// into an existing key. No other key is on that lease.
type inbox struct {
	*store
	id      string
	deliver func(driver.Signal)

	first chan struct{} // closed when the inbox exists, or could not be created
	lease atomic.Int64  // the ID of the last etcd lease; 0 if there was none
}

const (
	inboxTTL          = 15                     // the TTL of an inbox's etcd lease, in seconds
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
func (m *inbox) run() {
	retry := func() { m.deliver(driver.Signal{Kind: driver.SignalRetry}) } // earlier signals are lost
	m.running.Go(func() { m.subscribe(m.receive, m.first, retry) })
	m.running.Go(func() { m.subscribe(m.follow, m.follows, func() {}) })
	m.running.Go(m.runClock)
}

// subscribe keeps a watch until the client is closed, and calls retry each time that the
// watch begins. It closes first when the watch has begun or failed for the first time.
func (m *inbox) subscribe(run func(ctx context.Context, subscribed func()), first chan struct{}, retry func()) {
	tried := sync.OnceFunc(func() { close(first) })
	defer tried()
	engine.Subscription{
		Run: run,
		StateChanged: func(up bool) {
			if tried(); up {
				retry()
			}
		},
		FirstPause: resubscribePause, LongestPause: resubscribePause,
	}.Keep(m.life)
}

// follow watches the clock until the watch fails.
func (m *inbox) follow(life context.Context, subscribed func()) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	began := false
	for r := range m.client.Watch(clientv3.WithRequireLeader(ctx), m.clockKey(), clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if r.Err() != nil || r.Canceled {
			return
		}
		if !began {
			began = true
			if m.readClock(ctx) != nil {
				return
			}
			m.running.Go(func() { m.askClock(ctx); subscribed() })
		}
		for _, e := range r.Events {
			if string(e.Kv.GetKey()) == m.callKey() {
				m.clock.call()
				continue
			}
			if t, err := parseTick(string(e.Kv.GetValue()), e.Kv.GetModRevision()); err == nil && e.Type == clientv3.EventTypePut {
				m.clock.learn(t)
			}
		}
	}
}

// receive creates the inbox, and delivers its signals until its watch or etcd lease
// fails.
func (m *inbox) receive(life context.Context, subscribed func()) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	signals := m.client.Watch(clientv3.WithRequireLeader(ctx), m.inboxKey(m.id), clientv3.WithCreatedNotify())
	if r, ok := <-signals; !ok || r.Err() != nil {
		return
	}
	alive, err := m.make(ctx)
	if err != nil {
		return
	}
	subscribed()
	for {
		select {
		case _, ok := <-alive:
			if !ok {
				return // the lease is gone, and the key with it
			}
		case r, ok := <-signals:
			if !ok || r.Err() != nil {
				return
			}
			for _, e := range r.Events {
				if e.Type == clientv3.EventTypeDelete {
					return
				}
				for line := range strings.SplitSeq(string(e.Kv.GetValue()), "\n") {
					if signal, ok := engine.DecodeSignal(line); ok {
						m.deliver(signal)
					}
				}
			}
		}
	}
}

// make creates the key of the inbox, on an etcd lease of its own. An earlier lease, from
// which this moves the key, expires by itself.
func (m *inbox) make(ctx context.Context) (alive <-chan *clientv3.LeaseKeepAliveResponse, err error) {
	brief, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), backgroundTimeout)
	defer cancel()
	lease, err := m.client.Grant(brief, inboxTTL)
	if err != nil {
		return nil, err
	}
	m.lease.Store(int64(lease.ID))
	if _, err := m.client.Put(brief, m.inboxKey(m.id), "", clientv3.WithLease(lease.ID)); err != nil {
		return nil, err
	}
	return m.client.KeepAlive(ctx, lease.ID)
}

// remove removes the inbox.
func (m *inbox) remove(ctx context.Context) {
	if lease := m.lease.Load(); lease != 0 {
		_, _ = m.client.Revoke(ctx, clientv3.LeaseID(lease))
	}
}

// maxInboxesPerStep is the largest number of inboxes into which a step writes signals.
// Other waiters get no signal, and ask again later. etcd accepts 128 operations: the
// values of driver.MaxAll names and these inboxes.
const maxInboxesPerStep = 60

// signals returns the operations that write the signals of a step into existing inboxes.
func (s *store) signals(all []locktable.Signal) (ops []clientv3.Op) {
	var order []string
	by := map[string][]string{}
	for _, one := range all {
		if by[one.Inbox] == nil {
			order = append(order, one.Inbox)
		}
		by[one.Inbox] = append(by[one.Inbox], engine.EncodeSignal(one.Signal))
	}
	for _, id := range order[:min(len(order), maxInboxesPerStep)] {
		key := s.inboxKey(id)
		ops = append(ops, clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), ">", 0)},
			[]clientv3.Op{clientv3.OpPut(key, strings.Join(by[id], "\n"), clientv3.WithIgnoreLease())}, nil))
	}
	return ops
}
