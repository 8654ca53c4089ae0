package redislock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// Subscribe implements redisscript.Conn. rueidis' reading goroutine calls the functions.
//
// With RESP2 rueidis has a second connection for subscriptions, and does not replace it
// after a loss while the first one works (v1.0.79). So if Receive fails before it has
// subscribed, Subscribe repeats it on a connection of its own.
func (s *conn) Subscribe(ctx context.Context, c redisscript.Channel, subscribed func(), onMessage func(string)) error {
	var confirmed atomic.Bool
	unsubscribeAtEnd := c.Temporary || s.end == nil // if false, the driver closes the connection soon
	err := receive(ctx, s.push, c, unsubscribeAtEnd, func() { confirmed.Store(true); subscribed() }, onMessage)
	if _, refused := rueidis.IsRedisErr(err); confirmed.Load() || refused || err == nil || ctx.Err() != nil {
		return err
	}
	dedicated, _ := s.push.Dedicate()
	defer dedicated.Close()
	return receive(ctx, dedicated, c, false, subscribed, onMessage)
}

func receive(ctx context.Context, client rueidis.CoreClient, c redisscript.Channel, unsubscribeAtEnd bool, subscribed func(), onMessage func(string)) error {
	cmd := client.B().Subscribe().Channel(c.Name).Build()
	if c.Sharded {
		cmd = client.B().Ssubscribe().Channel(c.Name).Build()
	}
	hookCtx := rueidis.WithOnSubscriptionHook(ctx, func(e rueidis.PubSubSubscription) {
		if e.Kind == "subscribe" || e.Kind == "ssubscribe" {
			subscribed()
		}
	})
	// When ctx ends, rueidis ends Receive, but not the subscription: the server would
	// still send messages.
	hookCtx = rueidis.WithOnReceiveReturnHook(hookCtx, func(err error, client rueidis.CommandClient) error {
		if unsubscribeAtEnd && ctx.Err() != nil {
			unsubscribe(client, c)
		}
		return err
	})
	return client.Receive(hookCtx, cmd, func(m rueidis.PubSubMessage) { onMessage(m.Message) })
}

// unsubscribe ends the subscription at the server, unless the server answers PING with an
// error. rueidis (v1.0.79) sends a PING after each UNSUBSCRIBE, and panics if the answer
// is an unexpected error: MISCONF when the server cannot save its data, MASTERDOWN of a
// replica that lost its master. So unsubscribe sends a PING first. A subscription that
// remains only costs the server some messages.
func unsubscribe(client rueidis.CommandClient, c redisscript.Channel) {
	unsubscribeCtx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if client.Do(unsubscribeCtx, client.B().Ping().Build()).Error() != nil {
		return
	}
	cmd := client.B().Unsubscribe().Channel(c.Name).Build()
	if c.Sharded {
		cmd = client.B().Sunsubscribe().Channel(c.Name).Build()
	}
	client.Do(unsubscribeCtx, cmd)
}
