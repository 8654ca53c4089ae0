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

// batch is the answer of a cursor of a change stream.
func batch(name string, changes ...any) bson.D {
	return bson.D{
		{Key: "cursor", Value: bson.D{
			{Key: "id", Value: int64(77)}, {Key: "ns", Value: "db." + signals}, {Key: name, Value: append(bson.A{}, changes...)},
			{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: "1"}}},
		}},
		{Key: "ok", Value: 1.0},
	}
}

func watches(c bson.D) bool { return c[0].Value == signals }
func follows(c bson.D) bool { return field(c, "collection") == signals }

// listens opens a driver that gets its signals from the member's change streams.
func listens(t *testing.T, m *member, db string) (*lockDriver, <-chan driver.Signal) {
	t.Helper()
	d := open(t, strings.Replace(m.url(db), "&push=false", "", 1))
	return d, servertest.Listen(t, d)
}

// A signal that another driver stores for this one comes by its change stream, even after
// the stream had to be opened again.
func TestAChangeStreamWakesAWaiter(t *testing.T) {
	t.Parallel()
	m, db, other := onReplicas(t)
	held, waits := mutex("job"), mutex("job")
	gets(t, other, held)
	stored := make(chan bson.D, 1)
	m.next(
		&plan{command: "aggregate", is: watches, instead: batch("firstBatch")},
		&plan{command: "getMore", is: follows, instead: refusal(primarySteppedDown, "PrimarySteppedDown", "ResumableChangeStreamError")},
		&plan{command: "aggregate", is: watches, instead: batch("firstBatch")},
		&plan{command: "getMore", is: follows, answer: func() bson.D {
			message := <-stored
			return batch("nextBatch", bson.D{
				{Key: "_id", Value: bson.D{{Key: "_data", Value: "2"}}}, {Key: "operationType", Value: "insert"},
				{Key: "documentKey", Value: bson.D{{Key: "_id", Value: field(message, "_id")}}}, {Key: "fullDocument", Value: message},
			})
		}},
	)
	d, heard := listens(t, m, db)
	waits.Queue, waits.QueueTTL = true, 30*time.Second
	isRefused(t, d, waits)
	m.next(&plan{command: "insert", is: func(c bson.D) bool {
		if c[0].Value != signals {
			return false
		}
		stored <- field(c, "documents").(bson.A)[0].(bson.D)
		return true
	}})
	noError(t, other.Release(within(t, 10*time.Second), lease(held)))
	servertest.Hear(t, heard, driver.SignalGranted, waits.Token)
	streams := m.all("aggregate")
	if len(streams) != 2 {
		t.Errorf("%d change streams, want one, and another when that had ended", len(streams))
	}
	for _, s := range streams {
		stages, _ := field(s.command, "pipeline").(bson.A)
		if len(stages) != 2 || field(stages[0].(bson.D), "$changeStream") == nil || field(stages[1].(bson.D), "$match") == nil {
			t.Errorf("%v; want a change stream that is for one inbox", s.command)
		}
	}
}

// If the server has no change streams, or the user no right to them, the driver polls.
func TestWithoutChangeStreamsSignalsAreLookedFor(t *testing.T) {
	t.Parallel()
	m, db, other := onReplicas(t)
	held, waits := mutex("job"), mutex("job")
	gets(t, other, held)
	for range 10 {
		m.next(&plan{command: "aggregate", is: watches, instead: refusal(unauthorized, "Unauthorized")})
		m.next(&plan{command: "find", is: watches, instead: refusal(unauthorized, "Unauthorized")}) // these polls fail
	}
	d, heard := listens(t, m, db)
	waits.Queue, waits.QueueTTL = true, 30*time.Second
	isRefused(t, d, waits)
	noError(t, other.Release(within(t, 10*time.Second), lease(held)))
	servertest.Hear(t, heard, driver.SignalGranted, waits.Token)

	times := int(time.Second / newPoller(d.store, nil, nil).Pace(time.Minute, 0))
	want := fmt.Sprintf("about %d times a second", times)
	m.next(&plan{command: "aggregate", is: watches, instead: refusal(unauthorized, "Unauthorized")})
	finds(t, d, "warning change streams", want)
}
