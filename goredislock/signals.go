package goredislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// pingAfter is the time for which a subscription may be silent before the driver sends a
// ping, and the time in which the server then has to answer. Only a ping shows that a
// connection is dead that was not closed.
const pingAfter = 5 * time.Second

// Subscribe implements redisscript.Conn. go-redis subscribes again by itself when a
// connection was lost, and reports the confirmation each time.
func (s *conn) Subscribe(ctx context.Context, c redisscript.Channel, subscribed func(), heard func(string)) error {
	var ps *redis.PubSub
	if c.Sharded {
		ps = s.client.SSubscribe(ctx, c.Name)
	} else {
		ps = s.client.Subscribe(ctx, c.Name)
	}
	defer ps.Close() // it has its own connection, and the subscription ends with that
	stop := context.AfterFunc(ctx, func() { _ = ps.Close() })
	defer stop()
	for pinged := false; ; {
		m, err := ps.ReceiveTimeout(ctx, pingAfter)
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
			case "sunsubscribe": // not at our request: the slot has been moved
				s.cluster.ReloadState(ctx)
				return errMoved
			}
		case *redis.Message:
			heard(m.Payload)
		}
	}
}

// follow makes go-redis look where the slots are, if it subscribed at a node that no
// longer has the slot. go-redis does so by itself for commands, but not for
// subscriptions.
func (s *conn) follow(ctx context.Context, err error) {
	if s.cluster != nil && redis.HasErrorPrefix(err, "MOVED") {
		s.cluster.ReloadState(ctx)
	}
}

var errMoved = errors.New("the slot of the channel has been moved to another node")
