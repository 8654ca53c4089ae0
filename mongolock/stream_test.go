package mongolock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

const signals = "pawl.signals"

// streamAnswer returns the answer of a change stream's cursor with these changes.
func streamAnswer(batch string, changes ...any) bson.D {
	return bson.D{
		{Key: "cursor", Value: bson.D{
			{Key: "id", Value: int64(77)}, {Key: "ns", Value: "db." + signals}, {Key: batch, Value: append(bson.A{}, changes...)},
			{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: "1"}}},
		}},
		{Key: "ok", Value: 1.0},
	}
}

func isOfSignals(c bson.D) bool     { return c[0].Value == signals }
func isNextOfSignals(c bson.D) bool { return field(c, "collection") == signals }

// openStreaming opens a driver that gets its signals from the member's change streams.
func openStreaming(t *testing.T, m *member, db string) (*lockDriver, <-chan driver.Signal) {
	t.Helper()
	d := open(t, strings.Replace(m.url(db), "&push=false", "", 1))
	return d, servertest.Listen(t, d)
}

// The change stream delivers a signal that another driver has stored, even after the
// driver had to open the stream again.
func TestAChangeStreamWakesAWaiter(t *testing.T) {
	t.Parallel()
	m, db, other := startReplicaSet(t)
	held, waiter := mutex("job"), mutex("job")
	gets(t, other, held)
	stored := make(chan bson.D, 1)
	m.addPlans(
		&plan{command: "aggregate", matches: isOfSignals, replace: streamAnswer("firstBatch")},
		&plan{command: "getMore", matches: isNextOfSignals, replace: refusal(primarySteppedDown, "PrimarySteppedDown", "ResumableChangeStreamError")},
		&plan{command: "aggregate", matches: isOfSignals, replace: streamAnswer("firstBatch")},
		&plan{command: "getMore", matches: isNextOfSignals, answer: func() bson.D {
			message := <-stored
			return streamAnswer("nextBatch", bson.D{
				{Key: "_id", Value: bson.D{{Key: "_data", Value: "2"}}}, {Key: "operationType", Value: "insert"},
				{Key: "documentKey", Value: bson.D{{Key: "_id", Value: field(message, "_id")}}}, {Key: "fullDocument", Value: message},
			})
		}},
	)
	d, received := openStreaming(t, m, db)
	waiter.Queue, waiter.QueueTTL = true, 30*time.Second
	isRefused(t, d, waiter)
	m.addPlans(&plan{command: "insert", matches: func(c bson.D) bool {
		if c[0].Value != signals {
			return false
		}
		stored <- field(c, "documents").(bson.A)[0].(bson.D)
		return true
	}})
	noError(t, other.Release(within(t, 10*time.Second), lease(held)))
	servertest.Hear(t, received, driver.SignalGranted, waiter.Token)
	streams := m.takeCommands("aggregate")
	if len(streams) != 2 {
		t.Errorf("%d change streams, want one, and another after its end", len(streams))
	}
	for _, s := range streams {
		stages, _ := field(s.command, "pipeline").(bson.A)
		if len(stages) != 2 || field(stages[0].(bson.D), "$changeStream") == nil || field(stages[1].(bson.D), "$match") == nil {
			t.Errorf("%v; want a change stream for one inbox", s.command)
		}
	}
}

// If the server has no change streams, or the user no right to them, the driver polls.
func TestWithoutChangeStreamsTheDriverPolls(t *testing.T) {
	t.Parallel()
	m, db, other := startReplicaSet(t)
	held, waiter := mutex("job"), mutex("job")
	gets(t, other, held)
	for range 10 {
		m.addPlans(&plan{command: "aggregate", matches: isOfSignals, replace: refusal(unauthorized, "Unauthorized")})
		m.addPlans(&plan{command: "find", matches: isOfSignals, replace: refusal(unauthorized, "Unauthorized")})
	}
	d, received := openStreaming(t, m, db)
	waiter.Queue, waiter.QueueTTL = true, 30*time.Second
	isRefused(t, d, waiter)
	noError(t, other.Release(within(t, 10*time.Second), lease(held)))
	servertest.Hear(t, received, driver.SignalGranted, waiter.Token)

	times := int(time.Second / newPoller(d.store, nil, nil).Pace(time.Minute, 0))
	want := fmt.Sprintf("about %d times a second", times)
	m.addPlans(&plan{command: "aggregate", matches: isOfSignals, replace: refusal(unauthorized, "Unauthorized")})
	finds(t, d, "warning change streams", want)
}
