package mongolock

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// gets acquires a claim, and repeats it after errors, like a client.
func gets(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		var g driver.Grant
		if g, err = d.Acquire(within(t, 10*time.Second), c); err == nil {
			return g
		}
	}
	t.Fatalf("Acquire: %v", err)
	return driver.Grant{}
}

// An update that the server makes outside of its window is void, and the previous value
// counts.
func TestAnUpdateOutsideOfItsWindowIsVoid(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	d := open(t, server.databaseURL(server.addr, newDatabase()))
	c := mutex("job")
	g := gets(t, d, c)
	seen, err := d.store.Load(ctx, []string{"job"})
	noError(t, err)
	for _, offset := range []time.Duration{-time.Hour, time.Hour} {
		w, err := d.store.Time(ctx)
		noError(t, err)
		e := &locktable.Entry{}
		swapped, err := d.store.Swap(ctx, []swap.Swap{{
			Name: "job", Version: seen[0].Version, Previous: seen[0].Value, Value: e.Append(nil), Entry: e,
			Window: swap.Window{From: w.From.Add(offset), To: w.To.Add(offset)},
		}})
		if err != nil || swapped[0].Done || !swapped[0].OutsideWindow || string(swapped[0].Stored.Value) != string(seen[0].Value) {
			t.Fatalf("a window that is %v off: %+v, %v; want OutsideWindow", offset, swapped, err)
		}
		seen[0] = swapped[0].Stored
	}
	entry, err := open(t, server.databaseURL(server.addr, d.store.db.Name())).Inspect(ctx, "job")
	if err != nil || len(entry.Holders) != 1 || entry.Holders[0].Fence != g.Fence {
		t.Fatalf("%+v, %v; want a holder with fence %d", entry, err, g.Fence)
	}
}

// A step takes one round trip if the driver has seen the name, and two otherwise.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	var requests atomic.Int64
	client, err := mongo.Connect(options.Client().ApplyURI(server.databaseURL(server.addr, "")).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if (e.CommandName == "find" || e.CommandName == "findAndModify") && !strings.Contains(e.Command.String(), "signals") {
				requests.Add(1)
			}
		},
	}))
	noError(t, err)
	t.Cleanup(func() { disconnect(client) })
	d, err := asDriver(New(client.Database(newDatabase()), nil))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	gets(t, d, mutex("other")) // the driver now knows the server's time
	countRequests := func(step func()) int64 {
		before := requests.Load()
		step()
		return requests.Load() - before
	}
	// If the machine pauses, the driver asks for the time again, and repeats a step. So
	// each step has three tries.
	for i, want := range []int64{2, 1, 1, 1} {
		var acquired, released int64
		for try := range 3 {
			c := mutex("job")
			if i == 0 {
				c = mutex(fmt.Sprint("new ", try))
			}
			acquired = countRequests(func() { gets(t, d, c) })
			released = countRequests(func() {
				noError(t, d.Release(ctx, lease(c)))
			})
			if acquired <= want && released <= 1 {
				break
			}
		}
		if acquired > want || released > 1 {
			t.Errorf("%d round trips to acquire, want %d, and %d to release, want 1", acquired, want, released)
		}
	}
}

func TestConnectionsThatAreCut(t *testing.T) {
	t.Parallel()
	server, db := startServer(t), newDatabase()
	p := servertest.StartProxy(t, server.addr)
	url := server.databaseURL(p.Addr, db)
	servertest.Storm(t, []driver.Driver{open(t, url), open(t, url)}, p.Heal) // ends all connections
}

// After the server was killed and restarted, held names are still held, and a waiter
// still gets its name.
func TestAServerThatIsRestarted(t *testing.T) {
	t.Parallel()
	if realURL() != "" {
		t.Skip("the test must not kill the server of PAWL_TEST_MONGODB_URL: run it without that variable")
	}
	server, db := startFerretDB(t), newDatabase()
	servertest.RidesThrough(t, open(t, server.databaseURL(server.addr, db)), open(t, server.databaseURL(server.addr, db)), func() {
		server.Kill()
		time.Sleep(500 * time.Millisecond)
		server.run()
	})
}

func TestAWrongPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	url := strings.Replace(server.databaseURL(server.addr, newDatabase()), "mongodb://", "mongodb://joe:sesame@", 1)
	if strings.Count(url, "@") != 1 {
		t.Skip("PAWL_TEST_MONGODB_URL has a user: run it with a URL without a user")
	}
	_, err := Open(within(t, 30*time.Second), url)
	if wantDriverError(t, err, true, "password"); strings.Contains(err.Error(), "sesame") {
		t.Errorf("the password is in %v", err)
	}
}

func TestErrorsNameARefusedConnection(t *testing.T) {
	t.Parallel()
	_, err := Open(within(t, 30*time.Second), "mongodb://joe:sesame@127.0.0.1:1/app?serverSelectionTimeoutMS=300")
	if e := wantDriverError(t, err, false, ""); e.Hint == "" || e.Backend != "mongodb 127.0.0.1:1/app" || strings.Contains(err.Error(), "sesame") {
		t.Fatalf("%v; want a hint, the address, and no password", err)
	}
}

// A damaged document affects only its own name, and grants nothing.
func TestADamagedDocumentIsNotFree(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for _, set := range []bson.D{
		{{Key: "envelope", Value: []byte("junk")}, {Key: "version", Value: int64(1)}},
		{{Key: "version", Value: "1"}},
	} {
		url := server.databaseURL(server.addr, newDatabase())
		d := open(t, url)
		servertest.Damaged(t, d, open(t, url), "until its document is repaired", func(name string) {
			srv, err := d.store.server(ctx)
			noError(t, err)
			_, err = srv.entries.UpdateOne(ctx, bson.D{{Key: "_id", Value: name}}, bson.D{{Key: "$set", Value: set}})
			noError(t, err)
		})
	}
}

func TestTheDoctorOnTheTestServer(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	d := open(t, server.databaseURL(server.addr, newDatabase()))
	gets(t, d, mutex("job"))
	found := servertest.FindingsOf(t, d)
	isFerretDB := realURL() == "" // it has no TTL indexes
	if found.Have("error server") != isFerretDB || isFerretDB && !(found.Have("warning topology") && found.Have("warning index")) ||
		found.Have("error rights") || found.Have("warning rights") {
		t.Errorf("%q", found)
	}
}

func TestFindingsOfTheTopology(t *testing.T) {
	now := time.Now()
	if len(clockFindings(now, now, now)) != 0 || len(clockFindings(now.Add(time.Minute), now, now)) != 1 {
		t.Error("the doctor must report a clock that is a minute off, and not a correct one")
	}
	for want, g := range map[string]greeting{
		"":          {SetName: "rs", Hosts: []string{"a", "b", "c"}},
		"alone":     {},
		"1 members": {SetName: "rs", Hosts: []string{"a"}},
		"arbiter":   {SetName: "rs", Hosts: []string{"a", "b"}, Arbiters: []string{"c"}},
		"sharded":   {Msg: "isdbgrid"},
	} {
		found := g.topologyFindings()
		if want == "" && len(found) != 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0].Detail, want)) {
			t.Errorf("%+v: %+v; want %q", g, found, want)
		}
	}
}

func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	if realURL() != "" {
		t.Skip("PAWL_TEST_MONGODB_URL names a server that stays up")
	}
	s := startServer(t)
	s.Kill()
	servertest.OpensWhenServerStarts(t, s.databaseURL(s.addr, newDatabase())+"&serverSelectionTimeoutMS=500", s.run)
}

// After an operator has deleted the documents, held names are granted again, with greater
// fences, and the next renewal of the old holder fails.
func TestDocumentsThatAreDeleted(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	db := newDatabase()
	one, two := open(t, server.databaseURL(server.addr, db)), open(t, server.databaseURL(server.addr, db))
	srv, err := one.store.server(ctx)
	noError(t, err)
	servertest.Forgets(t, one, two, func() {
		if _, err := srv.entries.DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	})
}

// A queue grows until its entry does not fit into a document. The server's limit is 160
// times the limit of this test.
func TestAQueueThatDoesNotFit(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	url := server.databaseURL(server.addr, newDatabase())
	holder, other := open(t, url), open(t, url)
	holder.store.maxBytes, other.store.maxBytes = 100<<10, 100<<10
	drivertest.Full(t, "several names", holder, other)
}

func TestAServerThatIsPaused(t *testing.T) {
	t.Parallel()
	server, db := startFerretDB(t), newDatabase()
	servertest.StandsStill(t, open(t, server.databaseURL(server.addr, db)), open(t, server.databaseURL(server.addr, db)), server.Pause, server.Resume)
}
