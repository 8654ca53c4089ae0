package mongolock

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable/swap"
)

// Signals for other clients are documents. On a replica set, each driver has a change
// stream for its own inbox. On a single server, the driver polls for signals, and deletes
// a signal that it has read. The server deletes all others after signalTTLSeconds.
const signalTTLSeconds = 60

// message is a stored signal. Its id begins with the inbox, so that a query for one inbox
// needs no second index.
type message struct {
	ID     string    `bson:"_id"`
	At     time.Time `bson:"at"`
	Signal string    `bson:"signal"`
}

func inboxFilter(field, inbox string) bson.D {
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: inbox + "/"}, {Key: "$lt", Value: inbox + "0"}}}}
}

// sendSignals stores the signals of the swaps that took effect. It ignores errors,
// because a waiter without a signal repeats its request later.
func (t *store) sendSignals(ctx context.Context, srv *server, swaps []swap.Swap, swapped []swap.Swapped) {
	var all []any
	for i := range swaps {
		if !swapped[i].Done {
			continue
		}
		now := time.UnixMicro(int64(swaps[i].Window.From))
		for _, s := range swaps[i].Signals {
			all = append(all, message{ID: s.Inbox + "/" + rand.Text(), At: now, Signal: engine.EncodeSignal(s.Signal)})
		}
	}
	if len(all) > 0 {
		_, _ = srv.signals.InsertMany(ctx, all, options.InsertMany().SetOrdered(false))
	}
}

// listen delivers the signals for this driver, from its first wait or lease until it is
// closed.
func (t *store) listen(deliver func(driver.Signal)) {
	select {
	case <-t.claims.PollSooner():
	case <-t.life.Done():
		return
	}
	srv, err := t.server(t.life)
	if err != nil {
		return // only at Close, because the claim before PollSooner has stored the server
	}
	if srv.pushes {
		t.followStream(srv, deliver)
	}
	newPoller(t, srv, deliver).Run(t.life)
}

// followStream delivers the signals of a change stream until the driver is closed, or the
// server refuses the stream several times in a row.
func (t *store) followStream(srv *server, deliver func(driver.Signal)) {
	ctx, cancel := context.WithCancel(t.life)
	defer cancel()
	attempts := 0 // to open a stream, since the last signal
	run := func(ctx context.Context, subscribed func()) {
		attempts++
		c, err := srv.signals.Watch(ctx, mongo.Pipeline{{{Key: "$match", Value: append(
			inboxFilter("documentKey._id", t.inbox), bson.E{Key: "operationType", Value: "insert"})}}})
		if err == nil {
			subscribed()
			for c.Next(ctx) {
				var change struct {
					Message message `bson:"fullDocument"`
				}
				if c.Decode(&change) == nil {
					attempts = 1
					if s, ok := engine.DecodeSignal(change.Message.Signal); ok {
						deliver(s)
					}
				}
			}
			err = c.Err()
			_ = c.Close(context.WithoutCancel(ctx))
		}
		if refused, ok := errors.AsType[mongo.CommandError](err); ok && !refused.HasErrorLabel("ResumableChangeStreamError") && attempts > 3 {
			cancel()
		}
	}
	engine.Subscription{
		Run: run,
		StateChanged: func(up bool) {
			if up {
				deliver(driver.Signal{Kind: driver.SignalRetry}) // because the stream lacks earlier signals
			}
		},
		FirstPause: 20 * time.Millisecond, LongestPause: 5 * time.Second,
	}.Keep(ctx)
}
