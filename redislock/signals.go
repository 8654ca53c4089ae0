package redislock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// Receive implements redisscript.Sender. The functions are called from rueidis' goroutine
// that reads the connection.
//
// With RESP2 rueidis has a connection for subscriptions beside each other one, and does
// not make it anew when it was lost as long as the other one lives (v1.0.79): then a
// connection of our own serves, and is closed afterwards.
func (s *sender) Receive(ctx context.Context, c redisscript.Channel, subscribed func(), heard func(string)) error {
	var confirmed atomic.Bool
	leave := c.Brief || s.close == nil // else this is the end of the driver, and of the connection
	err := receive(ctx, s.push, c, leave, func() { confirmed.Store(true); subscribed() }, heard)
	if _, refused := rueidis.IsRedisErr(err); confirmed.Load() || refused || err == nil || ctx.Err() != nil {
		return err
	}
	own, _ := s.push.Dedicate()
	defer own.Close()
	return receive(ctx, own, c, false, subscribed, heard)
}

// receiver is what a client and a dedicated client have in common.
type receiver interface {
	B() rueidis.Builder
	Receive(ctx context.Context, subscribe rueidis.Completed, fn func(rueidis.PubSubMessage)) error
}

func receive(ctx context.Context, on receiver, c redisscript.Channel, leave bool, subscribed func(), heard func(string)) error {
	cmd := on.B().Subscribe().Channel(c.Name).Build()
	if c.Sharded {
		cmd = on.B().Ssubscribe().Channel(c.Name).Build()
	}
	watched := rueidis.WithOnSubscriptionHook(ctx, func(e rueidis.PubSubSubscription) {
		if e.Kind == "subscribe" || e.Kind == "ssubscribe" {
			subscribed()
		}
	})
	// What ends with ctx is only the receiving: the server would go on sending, for as
	// long as the connection lives.
	watched = rueidis.WithOnReceiveReturnHook(watched, func(err error, on rueidis.CommandClient) error {
		if leave && ctx.Err() != nil {
			unsubscribe(on, c)
		}
		return err
	})
	return on.Receive(watched, cmd, func(m rueidis.PubSubMessage) { heard(m.Message) })
}

// unsubscribe tells the server, unless it is in trouble. rueidis (v1.0.79) sends a PING
// after each UNSUBSCRIBE, and panics, for the whole process, if its answer is an error
// that it does not expect there: MISCONF when the server cannot save its data, MASTERDOWN
// of a replica that lost its master. So a PING goes first. A subscription that is left
// costs the server a message to nobody now and then.
func unsubscribe(on rueidis.CommandClient, c redisscript.Channel) {
	bye, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if on.Do(bye, on.B().Ping().Build()).Error() != nil {
		return
	}
	if c.Sharded {
		on.Do(bye, on.B().Sunsubscribe().Channel(c.Name).Build())
	} else {
		on.Do(bye, on.B().Unsubscribe().Channel(c.Name).Build())
	}
}
