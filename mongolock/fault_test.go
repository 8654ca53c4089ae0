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

// gets acquires a claim, and repeats it like a client.
func gets(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		var g driver.Grant
		if g, err = d.Acquire(within(t, 10*time.Second), c); err == nil {
			return g
		}
	}
	t.Fatalf("Acquire: %v; want it granted", err)
	return driver.Grant{}
}

// An update that the server makes outside of its window is void, and the value before
// counts.
func TestAnUpdateOutsideOfItsWindowIsVoid(t *testing.T) {
	t.Parallel()
	server := serve(t)
	d := open(t, server.at(server.addr, database()))
	c := mutex("job")
	g := gets(t, d, c)
	seen, err := d.store.Load(ctx, []string{"job"})
	noError(t, err)
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		w, err := d.store.Time(ctx)
		noError(t, err)
		e := &locktable.Entry{}
		swapped, err := d.store.Swap(ctx, []swap.Swap{{
			Name: "job", Version: seen[0].Version, Previous: seen[0].Value, Value: e.Append(nil), Entry: e,
			Window: swap.Window{From: w.From.Add(off), To: w.To.Add(off)},
		}})
		if err != nil || swapped[0].Done || !swapped[0].OutsideWindow || string(swapped[0].Stored.Value) != string(seen[0].Value) {
			t.Fatalf("%v off: %+v, %v; want it void", off, swapped, err)
		}
		seen[0] = swapped[0].Stored
	}
	entry, err := open(t, server.at(server.addr, d.store.db.Name())).Inspect(ctx, "job")
	if err != nil || len(entry.Holders) != 1 || entry.Holders[0].Fence != g.Fence {
		t.Fatalf("%+v, %v; want it held with fence %d", entry, err, g.Fence)
	}
}

// A step costs one round trip if the name is known, and two if it is not.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	server := serve(t)
	var requests atomic.Int64
	client, err := mongo.Connect(options.Client().ApplyURI(server.at(server.addr, "")).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if (e.CommandName == "find" || e.CommandName == "findAndModify") && !strings.Contains(e.Command.String(), "signals") {
				requests.Add(1)
			}
		},
	}))
	noError(t, err)
	t.Cleanup(func() { disconnect(client) })
	d, err := asDriver(New(client.Database(database()), nil))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	gets(t, d, mutex("other")) // from here on the time is known
	asked := func(step func()) int64 {
		before := requests.Load()
		step()
		return requests.Load() - before
	}
	// On a machine that stops for a moment, the server's time is no longer known, and a
	// step is repeated. So the driver has three tries to need no more than it should.
	for i, want := range []int64{2, 1, 1, 1} {
		var acquired, released int64
		for try := range 3 {
			c := mutex("job")
			if i == 0 {
				c = mutex(fmt.Sprint("new ", try))
			}
			acquired = asked(func() { gets(t, d, c) })
			released = asked(func() {
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
	server, db := serve(t), database()
	p := servertest.StartProxy(t, server.addr)
	url := server.at(p.Addr, db)
	servertest.Storm(t, []driver.Driver{open(t, url), open(t, url)}, p.Heal) // ends all connections
}

// The server is killed and comes back: held names are still held, and the waiter gets
// one.
func TestAServerThatComesBack(t *testing.T) {
	t.Parallel()
	if realURL() != "" {
		t.Skip("the server of PAWL_TEST_MONGODB_URL is not ours to kill: run it without that variable")
	}
	server, db := ferret(t), database()
	servertest.RidesThrough(t, open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db)), func() {
		server.Kill()
		time.Sleep(500 * time.Millisecond)
		server.run()
	})
}

func TestAWrongPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	server := serve(t)
	url := strings.Replace(server.at(server.addr, database()), "mongodb://", "mongodb://joe:sesame@", 1)
	if strings.Count(url, "@") != 1 {
		t.Skip("PAWL_TEST_MONGODB_URL has a user of its own: run it with one that has none")
	}
	_, err := Open(within(t, 30*time.Second), url)
	if explained(t, err, true, "password"); strings.Contains(err.Error(), "sesame") {
		t.Errorf("the password is in %v", err)
	}
}

func TestWhereNobodyListens(t *testing.T) {
	t.Parallel()
	_, err := Open(within(t, 30*time.Second), "mongodb://joe:sesame@127.0.0.1:1/app?serverSelectionTimeoutMS=300")
	if e := explained(t, err, false, ""); e.Hint == "" || e.Backend != "mongodb 127.0.0.1:1/app" || strings.Contains(err.Error(), "sesame") {
		t.Fatalf("%v; want to be told that nobody listens", err)
	}
}

// A damaged document affects only its own name, and grants nothing.
func TestADamagedDocumentIsNotFree(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for _, set := range []bson.D{
		{{Key: "envelope", Value: []byte("junk")}, {Key: "version", Value: int64(1)}},
		{{Key: "version", Value: "1"}},
	} {
		url := server.at(server.addr, database())
		d := open(t, url)
		servertest.Damaged(t, d, open(t, url), "until its document is repaired", func(name string) {
			at, err := d.store.server(ctx)
			noError(t, err)
			_, err = at.entries.UpdateOne(ctx, bson.D{{Key: "_id", Value: name}}, bson.D{{Key: "$set", Value: set}})
			noError(t, err)
		})
	}
}

func TestTheDoctorKnowsWhatItLooksAt(t *testing.T) {
	t.Parallel()
	server := serve(t)
	d := open(t, server.at(server.addr, database()))
	gets(t, d, mutex("job"))
	found := servertest.FindingsOf(t, d)
	alone := realURL() == "" // FerretDB, which forgets nothing
	if found.Have("error server") != alone || alone && !(found.Have("warning topology") && found.Have("warning index")) ||
		found.Have("error rights") || found.Have("warning rights") {
		t.Errorf("%q", found)
	}
}

func TestTheDoctorJudgesWhatServersSay(t *testing.T) {
	now := time.Now()
	if len(clock(now, now, now)) != 0 || len(clock(now.Add(time.Minute), now, now)) != 1 {
		t.Error("a clock that is a minute off is to be told, and one that is right is not")
	}
	for want, g := range map[string]greeting{
		"":          {SetName: "rs", Hosts: []string{"a", "b", "c"}},
		"alone":     {},
		"1 members": {SetName: "rs", Hosts: []string{"a"}},
		"arbiter":   {SetName: "rs", Hosts: []string{"a", "b"}, Arbiters: []string{"c"}},
		"sharded":   {Msg: "isdbgrid"},
	} {
		found := g.topology()
		if want == "" && len(found) != 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0].Detail, want)) {
			t.Errorf("%+v: %+v; want %q", g, found, want)
		}
	}
}

// A program starts before its server.
func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	if realURL() != "" {
		t.Skip("PAWL_TEST_MONGODB_URL names a server that stays up")
	}
	s := serve(t)
	s.Kill()
	servertest.OpensLate(t, s.at(s.addr, database())+"&serverSelectionTimeoutMS=500", s.run)
}

// An operator deletes the documents: held names are granted again, with greater fences,
// and the next renewal tells the holder.
func TestDocumentsThatAreDeleted(t *testing.T) {
	t.Parallel()
	server := serve(t)
	db := database()
	one, two := open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db))
	at, err := one.store.server(ctx)
	noError(t, err)
	servertest.Forgets(t, one, two, func() {
		if _, err := at.entries.DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	})
}

// A queue grows until its entry does not fit into a document. A server's fixed limit is
// 160 times as high as the one here.
func TestAQueueThatDoesNotFit(t *testing.T) {
	t.Parallel()
	server := serve(t)
	url := server.at(server.addr, database())
	holder, other := open(t, url), open(t, url)
	holder.store.most, other.store.most = 100<<10, 100<<10
	drivertest.Full(t, "several names", holder, other)
}

func TestAServerThatIsPaused(t *testing.T) {
	t.Parallel()
	server, db := ferret(t), database()
	servertest.StandsStill(t, open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db)), server.Pause, server.Resume)
}
