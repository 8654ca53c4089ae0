package mongolock

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// newPoller returns a poller for signals, for servers without change streams. A poll does
// not show the places of claims in the queue, so the poller polls for all claims as often
// as for the claim at the head.
func newPoller(t *store, srv *server, deliver func(driver.Signal)) *engine.Poller {
	pace := engine.GrowingPace(5*time.Millisecond, 175*time.Millisecond, 12)
	return &engine.Poller{
		Claims: t.claims, LossInterval: time.Second,
		Pace: func(waited time.Duration, _ int) time.Duration { return pace(waited, 0) },
		Poll: func(ctx context.Context) error { return t.pollSignals(ctx, srv, deliver) },
	}
}

// pollSignals reads the signals for this client, delivers them, and deletes them.
func (t *store) pollSignals(ctx context.Context, srv *server, deliver func(driver.Signal)) error {
	c, err := srv.signals.Find(ctx, inboxFilter("_id", t.inbox))
	if err != nil {
		return err
	}
	var ids bson.A
	err = eachDocument(ctx, c, func(m *message) error {
		ids = append(ids, m.ID)
		if s, ok := engine.DecodeSignal(m.Signal); ok {
			deliver(s)
		}
		return nil
	})
	if len(ids) > 0 {
		t.loops.Go(func() {
			ctx, cancel := context.WithTimeout(t.life, 5*time.Second)
			defer cancel()
			_, _ = srv.signals.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
		})
	}
	return err
}
