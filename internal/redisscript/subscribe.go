package redisscript

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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
// In a cluster a message on a plain channel goes to every node. For "lost", which is
// rare, that is good enough. "Granted" is frequent, so it is published on a sharded
// channel with a hash tag of the name's slot, and no other node gets it. There are 16384
// slots; the driver subscribes to the slots in which it waits.
type subscriber struct {
	client               *Client
	prefix               string
	id                   string
	push                 bool
	grantNeedsConfirming bool            // a grant has yet to be confirmed, so a signal only makes the waiter ask
	life                 context.Context // ends with close
	tracking             *tracker        // gets the grants before the listeners
	clock                *clock          // forgotten when a server, perhaps another one, confirms a subscription again
	end                  context.CancelFunc
	loops                sync.WaitGroup

	mu     sync.Mutex // protects all three below; never held during a wait
	box    *subscription
	shards map[uint16]shard
	closed bool

	listeners driver.Listeners
	claimant  atomic.Pointer[string] // the last claimant in its stored form: most processes have only one
}

// A subscription keeps one channel subscribed until end is called.
type subscription struct {
	Channel
	end    context.CancelFunc
	tried  chan struct{} // closed when the server has answered, or after subscribeTimeout
	once   sync.Once
	up     atomic.Bool
	failed atomic.Bool // an attempt has failed since it was last up
}

// A shard is the subscription to the channel of a slot.
type shard struct {
	*subscription
	until time.Time // the end of the last place in the queue that it was opened for
}

func newSubscriber(c *Client, prefix string, push bool) *subscriber {
	b := &subscriber{client: c, prefix: prefix, id: rand.Text()[:16], push: push, shards: map[uint16]shard{}}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// subscribeFor subscribes to the channels for the signals of a claim, and returns what is
// stored of the claimant: the channels, the owner and the TTL.
func (b *subscriber) subscribeFor(ctx context.Context, c *driver.Claim) (who string, err error) {
	box, shard, err := b.channelsFor(ctx, c)
	if err != nil {
		return "", err
	}
	var r room
	stored := appendClaimant(r[:0], box, shard, c)
	if last := b.claimant.Load(); last != nil && *last == string(stored) {
		return *last, nil
	}
	text := string(stored)
	b.claimant.Store(&text)
	return text, nil
}

// channelsFor returns the channels for the signals of a claim, once the server has
// answered the subscriptions. If a subscription fails, the claim goes on, and its waiter
// polls now and then.
func (b *subscriber) channelsFor(ctx context.Context, c *driver.Claim) (box, shard string, err error) {
	if !b.push {
		return "", "", nil
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return "", "", driver.ErrClosed
	}
	if b.box == nil {
		b.box = b.subscribe(b.life, Channel{Name: b.prefix + "inbox:" + b.id})
	}
	first, second := b.box, (*subscription)(nil)
	if c.Queue && b.client.Cluster {
		second = b.shardLocked(slot(c.Name), time.Now().Add(c.QueueTTL))
	}
	b.mu.Unlock()

	for _, s := range []*subscription{first, second} {
		if s == nil || s.up.Load() {
			continue
		}
		select {
		case <-s.tried:
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
	if b.life.Err() != nil {
		return "", "", driver.ErrClosed // close ended the attempt, so no signal would arrive
	}
	if second != nil && !second.refused() {
		shard = second.Name
	}
	return first.Name, shard, nil
}

// refused reports whether the last attempt to subscribe failed: the server may be too old
// for sharded channels.
func (s *subscription) refused() bool { return !s.up.Load() && s.failed.Load() }

// maxShards is the number of subscribed slots at which the driver leaves the slots in
// which it has no place in a queue any more.
const maxShards = 64

// shardLocked finds or makes the subscription of a slot.
func (b *subscriber) shardLocked(slot uint16, until time.Time) *subscription {
	s, known := b.shards[slot]
	if !known {
		if len(b.shards) >= maxShards {
			b.leaveShardsLocked(time.Now())
		}
		c := Channel{Name: b.prefix + "{" + tags()[slot] + "}inbox:" + b.id, Sharded: true, Brief: true}
		s.subscription = b.subscribe(b.life, c)
	}
	if until.After(s.until) {
		s.until = until
	}
	b.shards[slot] = s
	return s.subscription
}

func (b *subscriber) leaveShardsLocked(now time.Time) {
	for slot, s := range b.shards {
		if s.until.Before(now) {
			s.end()
			delete(b.shards, slot)
		}
	}
}

func (b *subscriber) subscribe(life context.Context, c Channel) *subscription {
	ctx, end := context.WithCancel(life)
	s := &subscription{Channel: c, end: end, tried: make(chan struct{})}
	impatient := time.AfterFunc(subscribeTimeout, s.giveUp)
	b.loops.Go(func() {
		defer impatient.Stop()
		b.receive(ctx, s)
	})
	return s
}

// subscribeTimeout is the time for which claims wait for the answer to a subscription. A
// server or a proxy that never answers delays them only once, by this time.
const subscribeTimeout = time.Second

// giveUp lets claims go on without a subscription that takes too long. If the server
// confirms it later, the driver notifies all claims to look.
func (s *subscription) giveUp() {
	s.failed.Store(true)
	if s.up.Load() { // subscriptionChanged has just set it, and may have cleared failed before us
		s.failed.Store(false)
		return
	}
	s.settle()
}

// settle wakes the claims that wait for the first answer.
func (s *subscription) settle() { s.once.Do(func() { close(s.tried) }) }

// receive keeps a subscription up until ctx ends.
func (b *subscriber) receive(ctx context.Context, s *subscription) {
	defer s.end()
	defer s.settle() // ctx may end before the server answers
	engine.Subscription{
		Run: func(ctx context.Context, hears func()) {
			_ = b.client.Subscribe(ctx, s.Channel, hears, b.heard) // Keep tries again after any error
		},
		Turned:     func(hears bool) { b.subscriptionChanged(s, hears) },
		FirstPause: 10 * time.Millisecond, LongestPause: time.Second,
	}.Keep(ctx)
}

// subscriptionChanged notes whether the subscription is up. When it comes up again, it
// notifies all claims to look, because messages that were published in between are lost.
func (b *subscriber) subscriptionChanged(s *subscription, hears bool) {
	if !hears {
		s.failed.Store(true)
		s.up.Store(false)
		s.settle()
		return
	}
	s.up.Store(true)
	reconfirmed := s.failed.Swap(false)
	select {
	case <-s.tried:
		reconfirmed = true
	default:
	}
	if s.settle(); reconfirmed {
		b.clock.forget()
		b.listeners.Notify(driver.Signal{Kind: driver.SignalLook})
	}
}

// bars reports whether an error says that a channel can never be subscribed to.
func bars(err error) bool {
	if err == nil || strings.HasPrefix(err.Error(), "MOVED") { // at another node it can be
		return false
	}
	_, permanent := advice(err)
	return permanent
}

func (b *subscriber) heard(message string) {
	signal, ok := readSignal(message)
	if !ok {
		return
	}
	if signal.Kind == driver.SignalGranted {
		b.tracking.held(signal.Token, 0)
	}
	if signal.Kind == driver.SignalGranted && b.grantNeedsConfirming {
		signal = driver.Signal{Kind: driver.SignalLook, Token: signal.Token}
	}
	b.listeners.Notify(signal)
}

// works reports whether signals arrive, as far as the driver knows. Before the first
// claim it assumes that they do.
func (b *subscriber) works() bool {
	if !b.push {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.box == nil || !b.box.failed.Load()
}

// begin starts a goroutine that close waits for, unless close was called. It reports
// whether it has started the goroutine.
func (b *subscriber) begin(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.loops.Go(f)
	}
	return !b.closed
}

// close ends all subscriptions, and waits until they have ended.
func (b *subscriber) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
	b.loops.Wait()
}

// appendClaimant appends what is stored of a claimant: the two channels for its signals,
// the owner, and the TTL. The scripts read the channels, and replace the TTL.
func appendClaimant(b []byte, box, shard string, c *driver.Claim) []byte {
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(box))), box...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(shard))), shard...)
	return number(locktable.AppendOwner(b, c.Owner), micros(c.TTL))
}
