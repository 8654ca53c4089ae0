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
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// Signals for others are documents. Where there are change streams, each driver has one
// over those for its own inbox; else it looks for them, and deletes what it has read.
// Those that nobody reads the server forgets.
const signalLife = 60 // seconds

// message is a signal as it is stored. Its id begins with the inbox, so that those for
// one are found without a second index.
type message struct {
	ID     string    `bson:"_id"`
	At     time.Time `bson:"at"`
	Signal string    `bson:"signal"`
}

func mine(field, inbox string) bson.D {
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: inbox + "/"}, {Key: "$lt", Value: inbox + "0"}}}}
}

// send stores the signals of the swaps that took effect. Nothing depends on them but
// speed, so what goes wrong is not told: whoever waits asks by itself, later.
func (t *store) send(ctx context.Context, at *server, swaps []optimistic.Swap, swapped []optimistic.Swapped) {
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
		_, _ = at.signals.InsertMany(ctx, all, options.InsertMany().SetOrdered(false))
	}
}

// listen delivers what is for this driver, from when it first waits or holds until it is
// closed.
func (t *store) listen(deliver func(driver.Signal)) {
	select {
	case <-t.claims.Hurry():
	case <-t.life.Done():
		return
	}
	at, err := t.server(t.life)
	if err != nil {
		return // closed: a claim was answered, so the server is known
	}
	if at.pushes {
		t.stream(at, deliver)
	}
	newPoller(t, at, deliver).Run(t.life)
}

// stream delivers what a change stream says, until there cannot be one.
func (t *store) stream(at *server, deliver func(driver.Signal)) {
	ctx, end := context.WithCancel(t.life)
	defer end()
	attempts := 0 // since the last signal
	run := func(ctx context.Context, hears func()) {
		attempts++
		c, err := at.signals.Watch(ctx, mongo.Pipeline{{{Key: "$match", Value: append(
			mine("documentKey._id", t.inbox), bson.E{Key: "operationType", Value: "insert"})}}})
		if err == nil {
			hears()
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
			end()
		}
	}
	engine.Subscription{
		Run: run,
		Turned: func(hears bool) {
			if hears {
				deliver(driver.Signal{Kind: driver.SignalLook}) // what came before is not in the stream
			}
		},
		FirstPause: 20 * time.Millisecond, LongestPause: 5 * time.Second,
	}.Keep(ctx)
}
