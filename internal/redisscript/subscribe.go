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

// A subscriber is where the signals of one driver come in: a channel of its own, whose
// name is stored with its claims.
//
// In a cluster a message on a plain channel goes to every node. That is right for "lost",
// which is seldom. "Granted" is not: it is published in the slot of its name, on a
// channel with a hash tag of that slot, so that no other node hears of it. There are
// 16384 slots, and the driver subscribes to those in which it waits.
type subscriber struct {
	sender  Sender
	prefix  string
	id      string
	push    bool
	hint    bool               // a grant has yet to be confirmed: a signal only says to ask
	life    context.Context    // until close
	granted func(driver.Token) // called before the listeners; may be nil
	again   func()             // called when a server, maybe another, confirms once more
	end     context.CancelFunc
	loops   sync.WaitGroup

	mu     sync.Mutex // protects all three below; never held while anything is waited for
	box    *subscription
	shards map[uint16]shard
	over   bool

	listeners driver.Listeners
	claimant  atomic.Pointer[string] // the last one, as it is stored: a process mostly has one
}

// A subscription is to one channel, for as long as it is wanted.
type subscription struct {
	Channel
	end    context.CancelFunc
	tried  chan struct{} // closed when the server has said yes or no, or was given up on
	once   sync.Once
	up     atomic.Bool
	failed atomic.Bool // since the last time that it was up
}

// A shard is the subscription of a slot.
type shard struct {
	*subscription
	until time.Time // the end of the last place in the queue that it was opened for
}

func newSubscriber(s Sender, prefix string, push bool) *subscriber {
	b := &subscriber{sender: s, prefix: prefix, id: rand.Text()[:16], push: push, shards: map[uint16]shard{}}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// open makes sure that the signals of a claim are heard, and returns what is stored of
// who claims: where they shall go, and its owner.
func (b *subscriber) open(ctx context.Context, c *driver.Claim) (who string, err error) {
	box, shard, err := b.channels(ctx, c)
	if err != nil {
		return "", err
	}
	var r room
	stored := appendClaimant(r[:0], box, shard, &c.Owner)
	if last := b.claimant.Load(); last != nil && *last == string(stored) {
		return *last, nil
	}
	text := string(stored)
	b.claimant.Store(&text)
	return text, nil
}

// channels says where the signals of a claim shall go. If they cannot be heard the claim
// goes on without: a waiter then asks now and then.
func (b *subscriber) channels(ctx context.Context, c *driver.Claim) (box, shard string, err error) {
	if !b.push {
		return "", "", nil
	}
	b.mu.Lock()
	if b.over {
		b.mu.Unlock()
		return "", "", driver.ErrClosed
	}
	if b.box == nil {
		b.box = b.subscribe(b.life, Channel{Name: b.prefix + "inbox:" + b.id})
	}
	first, second := b.box, (*subscription)(nil)
	if c.Queue && b.sender.Cluster() {
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
		return "", "", driver.ErrClosed // close ended the trying, and nobody listens
	}
	if second != nil && !second.refused() {
		shard = second.Name
	}
	return first.Name, shard, nil
}

// refused reports whether the server has never let us subscribe: it may be too old for
// sharded channels.
func (s *subscription) refused() bool { return !s.up.Load() && s.failed.Load() }

// maxShards is how many slots are subscribed to at once before those are left in which
// nobody has waited lately.
const maxShards = 64

// shardLocked finds or makes the subscription of a slot.
func (b *subscriber) shardLocked(slot uint16, until time.Time) *subscription {
	s, known := b.shards[slot]
	if !known {
		if len(b.shards) >= maxShards {
			b.leaveLocked(time.Now())
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

func (b *subscriber) leaveLocked(now time.Time) {
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
	impatient := time.AfterFunc(hearing, s.giveUp)
	b.loops.Go(func() {
		defer impatient.Stop()
		b.receive(ctx, s)
	})
	return s
}

// hearing is how long claims wait for the answer to a subscription. A server, or a proxy
// before it, that never says yes or no costs them no more than that, once.
const hearing = time.Second

// giveUp lets claims go on without a subscription that takes too long. When it is up
// after all, everybody looks.
func (s *subscription) giveUp() {
	s.failed.Store(true)
	if s.up.Load() { // it came up in this moment, and may have said so before us
		s.failed.Store(false)
		return
	}
	s.settle()
}

// settle lets those go on who wait for the first answer.
func (s *subscription) settle() { s.once.Do(func() { close(s.tried) }) }

// receive keeps a subscription up until ctx ends.
func (b *subscriber) receive(ctx context.Context, s *subscription) {
	defer s.end()
	defer s.settle() // it may end before there is an answer
	engine.Subscription{
		Run: func(ctx context.Context, hears func()) {
			_ = b.sender.Receive(ctx, s.Channel, hears, b.heard) // it is tried again, whatever it was
		},
		Turned:     func(hears bool) { b.turned(s, hears) },
		FirstPause: 10 * time.Millisecond, LongestPause: time.Second,
	}.Keep(ctx)
}

// turned notes whether what is published now is heard. If it is heard again, everybody
// looks: what was published in between is lost.
func (b *subscriber) turned(s *subscription, hears bool) {
	if !hears {
		s.failed.Store(true)
		s.up.Store(false)
		s.settle()
		return
	}
	s.up.Store(true)
	again := s.failed.Swap(false)
	select {
	case <-s.tried:
		again = true
	default:
	}
	if s.settle(); again {
		b.again()
		b.listeners.Notify(driver.Signal{Kind: driver.SignalLook})
	}
}

// bars reports whether an error says that a channel can never be subscribed to.
func bars(err error) bool {
	if err == nil || strings.HasPrefix(err.Error(), "MOVED") { // it can, at another node
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
	if signal.Kind == driver.SignalGranted && b.granted != nil {
		b.granted(signal.Token)
	}
	if signal.Kind == driver.SignalGranted && b.hint {
		signal = driver.Signal{Kind: driver.SignalLook, Token: signal.Token}
	}
	b.listeners.Notify(signal)
}

// works reports whether signals arrive, as far as it is known: before the first claim it
// is expected.
func (b *subscriber) works() bool {
	if !b.push {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.box == nil || !b.box.failed.Load()
}

// begin starts a goroutine that close waits for, unless that was called.
func (b *subscriber) begin(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.loops.Go(f)
	}
	return !b.over
}

// close ends all subscriptions, and waits until they have ended.
func (b *subscriber) close() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.end()
	b.loops.Wait()
}

// appendClaimant appends what is stored of who claims: the two channels on which its
// signals are awaited, then the owner. The scripts look at the channels only.
func appendClaimant(b []byte, box, shard string, o *driver.Owner) []byte {
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(box))), box...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(shard))), shard...)
	return locktable.AppendOwner(b, *o)
}
