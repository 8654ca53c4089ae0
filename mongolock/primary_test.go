package mongolock

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

const (
	notWritablePrimary = 10107
	primarySteppedDown = 189
	shutdownInProgress = 91
	majorityTimeout    = 64
	retryable          = "RetryableWriteError"
)

func onReplicas(t *testing.T) (*member, string, *lockDriver) {
	t.Helper()
	m, db := startMember(t, ferret(t).addr), database()
	d := open(t, m.url(db))
	gets(t, d, mutex("other")) // from here on the time is known
	m.all()
	return m, db, d
}

// heldOnce fails unless one lease with that fence holds a name, as another client reads
// it.
func heldOnce(t *testing.T, m *member, db, name string, fence uint64) {
	t.Helper()
	e, err := open(t, m.url(db)).Inspect(within(t, 10*time.Second), name)
	if err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != fence || e.Fence != fence {
		t.Errorf("%+v, %v; want one holder with fence %d", e, err, fence)
	}
}

// MongoDB's client repeats a write if the answer was lost, or said that the primary has
// stepped down. The write happens once, and gets the first answer.
func TestAWriteThatIsSentAgainCountsOnce(t *testing.T) {
	t.Parallel()
	m, db, d := onReplicas(t)
	for what, bad := range map[string]plan{
		"the network is cut when it is done":   {cuts: true},
		"it was no primary":                    {instead: refusal(notWritablePrimary, "NotWritablePrimary", retryable)},
		"it stepped down before":               {instead: refusal(primarySteppedDown, "PrimarySteppedDown", retryable)},
		"it goes down before a majority knows": {adds: doubt(shutdownInProgress, "ShutdownInProgress", retryable)},
	} {
		c, many := mutex(what), []driver.LeaseRef{}
		write := func(command string, step func() error) {
			t.Helper()
			m.all()
			p := bad
			p.command = command
			m.next(&p)
			if err := step(); err != nil {
				t.Errorf("%s, %s: %v", what, command, err)
			}
			all := m.all(command)
			if len(all) < 2 || write(all[0].command) == "" || write(all[0].command) != write(all[1].command) {
				t.Errorf("%s: %d times %s, want one twice, with one number", what, len(all), command)
				return
			}
			if first := p.instead == nil; all[1].again != first {
				t.Errorf("%s: the server did it first: %v", what, !first)
			}
			// If the client looked for a new primary, the repeated write was late, and so
			// void.
			for _, s := range all[2:] {
				if write(s.command) == write(all[0].command) {
					t.Errorf("%s: %s was sent a third time", what, command)
				}
			}
		}
		var g driver.Grant
		write("findAndModify", func() (err error) { g, err = d.Acquire(within(t, 10*time.Second), c); return err })
		heldOnce(t, m, db, what, g.Fence)
		for _, name := range []string{" 1", " 2", " 3"} {
			c := mutex(what + name)
			gets(t, d, c)
			longer := lease(c)
			longer.TTL += time.Minute // so that there is something to write
			many = append(many, longer)
		}
		write("update", func() error {
			answers, err := d.Renew(within(t, 10*time.Second), many)
			return errors.Join(append(answers, err)...)
		})
		write("findAndModify", func() error { return d.Release(within(t, 10*time.Second), lease(c)) })
		if next := gets(t, d, mutex(what)); next.Fence <= g.Fence {
			t.Errorf("%s: fence %d after %d", what, next.Fence, g.Fence)
		}
	}
}

// A write that no majority has acknowledged in time may be lost: the driver reports no
// grant. A repeated claim gets the same grant, and writes it again.
func TestAWriteWithoutAMajorityIsNoGrant(t *testing.T) {
	t.Parallel()
	m, db, d := onReplicas(t)
	c := mutex("job")
	m.next(&plan{command: "findAndModify", adds: doubt(majorityTimeout, "WriteConcernTimeout")})
	_, err := d.Acquire(within(t, 10*time.Second), c)
	explained(t, err, false, "")
	m.all()
	g := gets(t, d, c)
	if n := len(m.all("findAndModify")); n != 1 {
		t.Errorf("asked for again it was written %d times, want once more", n)
	}
	heldOnce(t, m, db, "job", g.Fence)

	other := mutex("other job")
	gets(t, d, other)
	both := []driver.LeaseRef{lease(c), lease(other)}
	for i := range both {
		both[i].TTL += time.Minute // so that there is something to write
	}
	m.next(&plan{command: "update", adds: doubt(majorityTimeout, "WriteConcernTimeout")})
	if answers, err := d.Renew(within(t, 10*time.Second), both); err == nil {
		t.Errorf("Renew: %v; want an error", answers)
	}
	if answers, err := d.Renew(within(t, 10*time.Second), both); err != nil || answers[0] != nil || answers[1] != nil {
		t.Errorf("Renew: %v, %v; want both renewed", answers, err)
	}
}

// If two clients insert one name, the server refuses the second, which reads that it is
// held.
func TestTwoThatInsertOneName(t *testing.T) {
	t.Parallel()
	m, db, d := onReplicas(t)
	other := open(t, m.url(db))
	gets(t, other, mutex("warm"))
	var g driver.Grant
	m.next(&plan{command: "findAndModify", before: func() { g = gets(t, other, mutex("job")) }})
	m.all()
	isRefused(t, d, mutex("job"))
	duplicates := 0
	for _, s := range m.all("findAndModify") {
		if field(s.answer, "code") == int32(11000) {
			duplicates++
		}
	}
	if duplicates != 1 {
		t.Errorf("the server refused %d duplicates, want 1", duplicates)
	}
	heldOnce(t, m, db, "job", g.Fence)

	// The same with many at once.
	w, err := d.store.Time(ctx)
	noError(t, err)
	e := &locktable.Entry{}
	create := func(name string) swap.Swap {
		return swap.Swap{Name: name, Value: e.Append(nil), Entry: e, Window: swap.Window{From: w.From, To: w.To.Add(10 * time.Second)}}
	}
	done, err := d.store.Swap(ctx, []swap.Swap{create("new"), create("newer"), create("job")})
	if err != nil || !done[0].Done || !done[1].Done || done[2].Done {
		t.Errorf("%+v, %v; want the third in vain", done, err)
	}
	heldOnce(t, m, db, "job", g.Fence)
}

// A missing right is reported, and the driver does not retry for long.
func TestRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	m, db, d := onReplicas(t)
	for _, command := range []string{"find", "findAndModify"} {
		m.next(&plan{command: command, instead: refusal(unauthorized, "Unauthorized"), is: func(c bson.D) bool { return c[0].Value == "pawl" }})
		_, err := d.Acquire(within(t, 10*time.Second), mutex("job"))
		if e := explained(t, err, true, "the user may not do this"); e.Name != "job" {
			t.Errorf("%s: %v; want the name in it", command, err)
		}
	}
	// Without indexes and signals all works, but others learn of changes later.
	for range 2 {
		m.next(&plan{command: "createIndexes", instead: refusal(unauthorized, "Unauthorized")})
		m.next(&plan{command: "insert", instead: refusal(unauthorized, "Unauthorized")})
	}
	poor := open(t, m.url(db))
	c, waits := mutex("poor"), mutex("poor")
	gets(t, poor, c)
	waits.Queue = true
	isRefused(t, d, waits)
	if err := poor.Release(within(t, 10*time.Second), lease(c)); err != nil {
		t.Error(err)
	}
	gets(t, d, waits)
}

// The commands depend on what the server guarantees. A write is for one version of one
// name, inserts only a missing one, may be repeated, and waits for a majority as long as
// that takes. A read of a name is linearizable, and goes to the primary.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	m, _, d := onReplicas(t)
	one, two := mutex("one"), mutex("two")
	gets(t, d, one)
	gets(t, d, two)
	longer := []driver.LeaseRef{lease(one), lease(two)}
	for i := range longer {
		longer[i].TTL += time.Minute // so that there is something to write
	}
	if answers, err := d.Renew(within(t, 10*time.Second), longer); err != nil || answers[0] != nil || answers[1] != nil {
		t.Fatal(answers, err)
	}
	noError(t, d.Release(within(t, 10*time.Second), lease(one)))
	seen := map[string]int{}
	for _, s := range m.all("find", "findAndModify", "update") {
		if preference := field(s.command, "$readPreference", "mode"); preference != nil && preference != "primary" {
			t.Errorf("%s: it may be answered by a %v", s.name, preference)
		}
		kind := s.name
		switch s.name {
		case "find":
			id, _ := field(s.command, "filter", "_id").(string)
			level := field(s.command, "readConcern", "level")
			if want := map[bool]string{true: "linearizable", false: "majority"}[id != ""]; level != want {
				t.Errorf("find %q: read concern %v, want %s", id, level, want)
			}
			if id == "" {
				kind = "find many"
			}
		case "findAndModify":
			compares(t, field(s.command, "query"), field(s.command, "upsert"))
			acknowledged(t, s)
		case "update":
			for _, u := range field(s.command, "updates").(bson.A) {
				compares(t, field(u.(bson.D), "q"), field(u.(bson.D), "upsert"))
			}
			acknowledged(t, s)
		}
		seen[kind]++
	}
	// A late write is repeated.
	if seen["find"] < 2 || seen["findAndModify"] < 3 || seen["update"] < 1 || seen["find many"] < 1 {
		t.Errorf("%v; want two finds, three findAndModify, and one update with a find of many", seen)
	}
}

// compares fails unless a filter names one version of one document.
func compares(t *testing.T, filter, upsert any) {
	t.Helper()
	f, _ := filter.(bson.D)
	version, ok := field(f, "version").(int64)
	if name, _ := field(f, "_id").(string); name == "" || !ok || len(f) != 2 {
		t.Errorf("it writes to %v, want to one version of one name", filter)
	}
	if inserts, _ := upsert.(bool); inserts != (version == 0) {
		t.Errorf("upsert is %v for version %d", upsert, version)
	}
}

// acknowledged fails unless a write waits for a majority, and may be sent again.
func acknowledged(t *testing.T, s sent) {
	t.Helper()
	concern, _ := field(s.command, "writeConcern").(bson.D)
	if field(concern, "w") != "majority" || len(concern) != 1 {
		t.Errorf("%s: write concern %v, want a majority without a limit", s.name, concern)
	}
	if write(s.command) == "" {
		t.Errorf("%s: it has no number, so it cannot be sent again", s.name)
	}
}
