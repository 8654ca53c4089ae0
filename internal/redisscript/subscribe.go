package redisscript

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// A subscriber receives the signals of one driver, on the driver's own channel. The name
// of that channel is stored with the claims.
//
// In a cluster a message on a plain channel goes to every node. Signals of a loss are
// rare, so they use it. Signals of a grant are frequent, so the server publishes them on
// a sharded channel with a hash tag of the name's slot, and only the node of that slot
// gets them. There are 16384 slots; the driver subscribes to the slots in which it waits.
type subscriber struct {
	d     *Driver
	id    string
	life  context.Context // ends with close
	end   context.CancelFunc
	loops engine.Background

	mu     sync.Mutex // protects the two fields below; never held during a wait
	inbox  *subscription
	shards map[uint16]*subscription // by the slot

	listeners driver.Listeners
	claimant  atomic.Pointer[string] // the stored form of the last claimant; most processes have only one
}

// A subscription keeps one channel subscribed until end is called.
type subscription struct {
	Channel
	end   context.CancelFunc
	up    atomic.Bool
	until time.Time // for a slot: the latest expiry of a place in a queue that uses the channel

	tried      context.Context    // ends when the server has answered, or after subscribeTimeout
	wakeClaims context.CancelFunc // ends tried, so that claims no longer wait
}

func newSubscriber(d *Driver) *subscriber {
	b := &subscriber{d: d, id: rand.Text()[:16], shards: map[uint16]*subscription{}}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// channelsFor returns the channels for the signals of a claim, after the server has
// answered the subscriptions. If a subscription fails, the claim goes on, and its waiter
// polls.
func (b *subscriber) channelsFor(ctx context.Context, c *driver.Claim) (inbox, shard string, err error) {
	if b.d.NoPush {
		return "", "", nil
	}
	b.mu.Lock()
	if b.inbox == nil {
		b.inbox = b.subscribe(Channel{Name: b.d.Prefix + "inbox:" + b.id})
	}
	inboxSub, shardSub := b.inbox, (*subscription)(nil)
	if c.Queue && b.d.client.Cluster {
		shardSub = b.shardLocked(slot(c.Name), time.Now().Add(c.QueueTTL))
	}
	b.mu.Unlock()

	for _, s := range []*subscription{inboxSub, shardSub} {
		if s == nil || s.up.Load() {
			continue
		}
		if _, err := await(ctx, b.d.conn.bounds, s.tried.Done()); err != nil {
			return "", "", err
		}
	}
	if b.life.Err() != nil {
		return "", "", driver.ErrClosed // close has ended the subscription, so no signal would arrive
	}
	if shardSub != nil && !shardSub.hasFailed() {
		shard = shardSub.Name
	}
	return inboxSub.Name, shard, nil
}

// hasFailed reports whether the subscription is down after an attempt that failed or took
// too long, for example because the server is too old for sharded channels.
func (s *subscription) hasFailed() bool { return !s.up.Load() && s.tried.Err() != nil }

// maxShards is the number of subscribed slots at which the driver begins to unsubscribe
// from slots in which it no longer waits.
const maxShards = 64

// shardLocked returns the subscription of a slot, and starts it if needed.
func (b *subscriber) shardLocked(slot uint16, until time.Time) *subscription {
	s := b.shards[slot]
	if s == nil {
		if len(b.shards) >= maxShards {
			now := time.Now()
			maps.DeleteFunc(b.shards, func(_ uint16, s *subscription) bool {
				isPast := s.until.Before(now)
				if isPast {
					s.end()
				}
				return isPast
			})
		}
		s = b.subscribe(Channel{Name: b.d.Prefix + "{" + slotTags()[slot] + "}inbox:" + b.id, Sharded: true, Temporary: true})
		b.shards[slot] = s
	}
	if until.After(s.until) {
		s.until = until
	}
	return s
}

// subscribe starts a subscription, which lasts until its end is called, or until close.
func (b *subscriber) subscribe(c Channel) *subscription {
	ctx, end := context.WithCancel(b.life)
	s := &subscription{Channel: c, end: end}
	s.tried, s.wakeClaims = context.WithTimeout(ctx, subscribeTimeout) // the end also wakes the claims
	b.loops.Go(func() {
		defer end()
		engine.Subscription{
			Run: func(ctx context.Context, subscribed func()) {
				_ = b.d.client.Subscribe(ctx, c, subscribed, b.onMessage) // Keep tries again after any error
			},
			StateChanged: func(up bool) { b.subscriptionChanged(s, up) },
			FirstPause:   10 * time.Millisecond, LongestPause: time.Second,
		}.Keep(ctx)
	})
	return s
}

// subscribeTimeout is the time for which claims wait for the answer to a subscription. A
// server or a proxy that never answers delays claims only once.
const subscribeTimeout = time.Second

// subscriptionChanged records whether the subscription is up. If it comes up late or
// again, all claims retry, because earlier messages are lost.
func (b *subscriber) subscriptionChanged(s *subscription, up bool) {
	s.up.Store(up)
	late := s.tried.Err() != nil // read after up was set: if false, no claim has stopped waiting yet
	if s.wakeClaims(); up && late {
		b.d.clock.forget() // another server may have confirmed the subscription
		b.listeners.Notify(driver.Signal{Kind: driver.SignalRetry})
	}
}

// cannotSubscribe reports whether an error means that no later attempt can succeed.
func cannotSubscribe(err error) bool {
	if err == nil || strings.HasPrefix(err.Error(), "MOVED") { // another node has the channel
		return false
	}
	_, permanent := advice(err)
	return permanent
}

func (b *subscriber) onMessage(message string) {
	signal, ok := readSignal(message)
	if !ok {
		return
	}
	if signal.Kind == driver.SignalGranted {
		b.d.tracking.recordHeld(signal.Token, 0) // before the listeners learn of the grant
		if b.d.WaitReplicas > 0 {                // the waiter sends its claim again, to confirm the grant
			signal = driver.Signal{Kind: driver.SignalRetry, Token: signal.Token}
		}
	}
	b.listeners.Notify(signal)
}

// works reports whether the plain channel is subscribed to, or no attempt has failed yet.
func (b *subscriber) works() bool {
	if b.d.NoPush {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inbox == nil || !b.inbox.hasFailed()
}

// close ends all subscriptions, and waits until they have ended.
func (b *subscriber) close() {
	b.end()
	b.loops.Close()
}

// claimantArg makes the stored form of a claimant: the two channels for its signals, the
// owner, and the TTL. The scripts read the channels, and replace the TTL.
func (b *subscriber) claimantArg(inbox, shard string, c *driver.Claim) string {
	arg := append(binary.BigEndian.AppendUint16(make([]byte, 0, 512), uint16(len(inbox))), inbox...)
	arg = append(binary.BigEndian.AppendUint16(arg, uint16(len(shard))), shard...)
	arg = appendNumbers(locktable.AppendOwner(arg, c.Owner), micros(c.TTL))
	if last := b.claimant.Load(); last != nil && *last == string(arg) {
		return *last
	}
	text := string(arg)
	b.claimant.Store(&text)
	return text
}
