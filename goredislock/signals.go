package goredislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// listening is how long a subscription may say nothing before it is pinged, and how long
// it then has to answer: one whose connection went silent, without an end, is noticed in
// no other way.
const listening = 5 * time.Second

// Receive implements redisscript.Sender. go-redis subscribes again by itself when a
// connection was lost, and confirms it each time.
func (s *sender) Receive(ctx context.Context, c redisscript.Channel, subscribed func(), heard func(string)) error {
	var ps *redis.PubSub
	if c.Sharded {
		ps = s.client.SSubscribe(ctx, c.Name)
	} else {
		ps = s.client.Subscribe(ctx, c.Name)
	}
	defer ps.Close() // its connection is its own, so the server forgets the subscription with it
	stop := context.AfterFunc(ctx, func() { _ = ps.Close() })
	defer stop()
	for pinged := false; ; {
		m, err := ps.ReceiveTimeout(ctx, listening)
		if silent, ok := errors.AsType[net.Error](err); ok && silent.Timeout() && !pinged {
			pinged = true
			err = ps.Ping(ctx)
			m = nil
		} else {
			pinged = false
		}
		if err != nil {
			s.follow(ctx, err)
			return err
		}
		switch m := m.(type) {
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				subscribed()
			case "sunsubscribe": // unasked: the slot has been moved
				s.cluster.ReloadState(ctx)
				return errMoved
			}
		case *redis.Message:
			heard(m.Payload)
		}
	}
}

// follow has go-redis look where the slots are, if a channel was asked for at a node that
// does not have it any more. It does so for commands, but not for subscriptions.
func (s *sender) follow(ctx context.Context, err error) {
	if s.cluster != nil && redis.HasErrorPrefix(err, "MOVED") {
		s.cluster.ReloadState(ctx)
	}
}

var errMoved = errors.New("the slot of the channel has been moved to another node")
