package goredislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// pingInterval is the time without a message after which the driver sends a ping, and the
// time limit for the answer. Only a ping detects a dead connection that was not closed.
const pingInterval = 5 * time.Second

// Subscribe implements redisscript.Conn. go-redis subscribes again by itself when a
// connection was lost, and reports the confirmation each time.
func (s *conn) Subscribe(ctx context.Context, c redisscript.Channel, subscribed func(), onMessage func(string)) error {
	var ps *redis.PubSub
	if c.Sharded {
		ps = s.client.SSubscribe(ctx, c.Name)
	} else {
		ps = s.client.Subscribe(ctx, c.Name)
	}
	defer ps.Close() // closes the connection of ps, which ends the subscription
	stop := context.AfterFunc(ctx, func() { _ = ps.Close() })
	defer stop()
	for pinged := false; ; {
		m, err := ps.ReceiveTimeout(ctx, pingInterval)
		if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() && !pinged {
			pinged = true
			err = ps.Ping(ctx)
			m = nil
		} else {
			pinged = false
		}
		if err != nil {
			// If the node no longer has the slot, go-redis loads the slots again by
			// itself for commands, but not for subscriptions.
			if s.cluster != nil && redis.HasErrorPrefix(err, "MOVED") {
				s.cluster.ReloadState(ctx)
			}
			return err
		}
		switch m := m.(type) {
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				subscribed()
			case "sunsubscribe": // not requested: the slot has moved
				s.cluster.ReloadState(ctx)
				return errors.New("the slot of the channel has been moved to another node")
			}
		case *redis.Message:
			onMessage(m.Payload)
		}
	}
}
