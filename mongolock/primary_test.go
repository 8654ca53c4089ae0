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

func startReplicaSet(t *testing.T) (*member, string, *lockDriver) {
	t.Helper()
	m, db := startMember(t, startFerretDB(t).addr), newDatabase()
	d := open(t, m.url(db))
	gets(t, d, mutex("other")) // the driver now knows the server's time
	m.takeCommands()
	return m, db, d
}

// checkOneHolder checks, with another client, that one lease with this fence holds a
// name.
func checkOneHolder(t *testing.T, m *member, db, name string, fence uint64) {
	t.Helper()
	e, err := open(t, m.url(db)).Inspect(within(t, 10*time.Second), name)
	if err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != fence || e.Fence != fence {
		t.Errorf("%+v, %v; want one holder with fence %d", e, err, fence)
	}
}

// MongoDB's client repeats a write if the answer was lost, or if the primary has stepped
// down. The write takes effect once, and gets the first answer.
func TestARepeatedWriteCountsOnce(t *testing.T) {
	t.Parallel()
	m, db, d := startReplicaSet(t)
	for what, bad := range map[string]plan{
		"the connection ends after the write": {cut: true},
		"the server was no primary":           {replace: refusal(notWritablePrimary, "NotWritablePrimary", retryable)},
		"the primary had stepped down":        {replace: refusal(primarySteppedDown, "PrimarySteppedDown", retryable)},
		"the primary shuts down":              {append: concernError(shutdownInProgress, "ShutdownInProgress", retryable)},
	} {
		c, many := mutex(what), []driver.LeaseRef{}
		write := func(command string, step func() error) {
			t.Helper()
			m.takeCommands()
			p := bad
			p.command = command
			m.addPlans(&p)
			if err := step(); err != nil {
				t.Errorf("%s, %s: %v", what, command, err)
			}
			all := m.takeCommands(command)
			if len(all) < 2 || writeID(all[0].command) == "" || writeID(all[0].command) != writeID(all[1].command) {
				t.Errorf("%s: %d times %s; want the same write twice", what, len(all), command)
				return
			}
			if hasEffect := p.replace == nil; all[1].repeated != hasEffect {
				t.Errorf("%s: the first write took effect: %v; want %v", what, !hasEffect, hasEffect)
			}
			// If the client had to find a new primary, the repeated write was late, and
			// so void.
			for _, s := range all[2:] {
				if writeID(s.command) == writeID(all[0].command) {
					t.Errorf("%s: %s was sent a third time", what, command)
				}
			}
		}
		var g driver.Grant
		write("findAndModify", func() (err error) { g, err = d.Acquire(within(t, 10*time.Second), c); return err })
		checkOneHolder(t, m, db, what, g.Fence)
		for _, name := range []string{" 1", " 2", " 3"} {
			c := mutex(what + name)
			gets(t, d, c)
			longer := lease(c)
			longer.TTL += time.Minute // the renewal then has to write
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

// A write may be lost if no majority has acknowledged it in time. So the driver returns
// an error. A repeated claim gets the same grant, and writes it again.
func TestAWriteWithoutAMajorityGrantsNothing(t *testing.T) {
	t.Parallel()
	m, db, d := startReplicaSet(t)
	c := mutex("job")
	m.addPlans(&plan{command: "findAndModify", append: concernError(majorityTimeout, "WriteConcernTimeout")})
	_, err := d.Acquire(within(t, 10*time.Second), c)
	wantDriverError(t, err, false, "")
	m.takeCommands()
	g := gets(t, d, c)
	if n := len(m.takeCommands("findAndModify")); n != 1 {
		t.Errorf("the repeated claim was written %d times, want once", n)
	}
	checkOneHolder(t, m, db, "job", g.Fence)

	other := mutex("other job")
	gets(t, d, other)
	both := []driver.LeaseRef{lease(c), lease(other)}
	for i := range both {
		both[i].TTL += time.Minute // the renewal then has to write
	}
	m.addPlans(&plan{command: "update", append: concernError(majorityTimeout, "WriteConcernTimeout")})
	if answers, err := d.Renew(within(t, 10*time.Second), both); err == nil {
		t.Errorf("Renew: %v; want an error", answers)
	}
	if answers, err := d.Renew(within(t, 10*time.Second), both); err != nil || answers[0] != nil || answers[1] != nil {
		t.Errorf("Renew: %v, %v; want both renewed", answers, err)
	}
}

// If two clients insert one name, the server refuses the second insert, and that client
// returns ErrHeld.
func TestTwoClientsInsertOneName(t *testing.T) {
	t.Parallel()
	m, db, d := startReplicaSet(t)
	other := open(t, m.url(db))
	gets(t, other, mutex("warm"))
	var g driver.Grant
	m.addPlans(&plan{command: "findAndModify", before: func() { g = gets(t, other, mutex("job")) }})
	m.takeCommands()
	isRefused(t, d, mutex("job"))
	duplicates := 0
	for _, s := range m.takeCommands("findAndModify") {
		if field(s.answer, "code") == int32(11000) {
			duplicates++
		}
	}
	if duplicates != 1 {
		t.Errorf("the server refused %d duplicates, want 1", duplicates)
	}
	checkOneHolder(t, m, db, "job", g.Fence)

	// The same with several names in one request.
	w, err := d.store.Time(ctx)
	noError(t, err)
	e := &locktable.Entry{}
	create := func(name string) swap.Swap {
		return swap.Swap{Name: name, Value: e.Append(nil), Entry: e, Window: swap.Window{From: w.From, To: w.To.Add(10 * time.Second)}}
	}
	done, err := d.store.Swap(ctx, []swap.Swap{create("new"), create("newer"), create("job")})
	if err != nil || !done[0].Done || !done[1].Done || done[2].Done {
		t.Errorf("%+v, %v; want only the first two done", done, err)
	}
	checkOneHolder(t, m, db, "job", g.Fence)
}

// The error names a missing right, and is permanent.
func TestRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	m, db, d := startReplicaSet(t)
	for _, command := range []string{"find", "findAndModify"} {
		m.addPlans(&plan{command: command, replace: refusal(unauthorized, "Unauthorized"), matches: func(c bson.D) bool { return c[0].Value == "pawl" }})
		_, err := d.Acquire(within(t, 10*time.Second), mutex("job"))
		if e := wantDriverError(t, err, true, "the user may not do this"); e.Name != "job" {
			t.Errorf("%s: %v; want the name in the error", command, err)
		}
	}
	// Without the rights to create indexes and to store signals, waiters get names later.
	for range 2 {
		m.addPlans(&plan{command: "createIndexes", replace: refusal(unauthorized, "Unauthorized")})
		m.addPlans(&plan{command: "insert", replace: refusal(unauthorized, "Unauthorized")})
	}
	limited := open(t, m.url(db))
	c, waiter := mutex("limited"), mutex("limited")
	gets(t, limited, c)
	waiter.Queue = true
	isRefused(t, d, waiter)
	if err := limited.Release(within(t, 10*time.Second), lease(c)); err != nil {
		t.Error(err)
	}
	gets(t, d, waiter)
}

// A write replaces one version of one name, or inserts a missing name. It may be
// repeated, and waits for a majority without a limit. A read of a name is linearizable,
// and goes to the primary.
func TestCommandsOfTheDriver(t *testing.T) {
	t.Parallel()
	m, _, d := startReplicaSet(t)
	one, two := mutex("one"), mutex("two")
	gets(t, d, one)
	gets(t, d, two)
	longer := []driver.LeaseRef{lease(one), lease(two)}
	for i := range longer {
		longer[i].TTL += time.Minute // the renewal then has to write
	}
	if answers, err := d.Renew(within(t, 10*time.Second), longer); err != nil || answers[0] != nil || answers[1] != nil {
		t.Fatal(answers, err)
	}
	noError(t, d.Release(within(t, 10*time.Second), lease(one)))
	seen := map[string]int{}
	for _, s := range m.takeCommands("find", "findAndModify", "update") {
		if preference := field(s.command, "$readPreference", "mode"); preference != nil && preference != "primary" {
			t.Errorf("%s: read preference %v, want primary", s.name, preference)
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
			checkFilter(t, field(s.command, "query"), field(s.command, "upsert"))
			checkWriteConcern(t, s)
		case "update":
			for _, u := range field(s.command, "updates").(bson.A) {
				checkFilter(t, field(u.(bson.D), "q"), field(u.(bson.D), "upsert"))
			}
			checkWriteConcern(t, s)
		}
		seen[kind]++
	}
	// The numbers may be larger, because a late write is repeated.
	if seen["find"] < 2 || seen["findAndModify"] < 3 || seen["update"] < 1 || seen["find many"] < 1 {
		t.Errorf("%v; want two finds, three findAndModify, and one update with a find of many", seen)
	}
}

// checkFilter fails unless a filter names one version of one document.
func checkFilter(t *testing.T, filter, upsert any) {
	t.Helper()
	f, _ := filter.(bson.D)
	version, ok := field(f, "version").(int64)
	if name, _ := field(f, "_id").(string); name == "" || !ok || len(f) != 2 {
		t.Errorf("the filter is %v, want one version of one name", filter)
	}
	if inserts, _ := upsert.(bool); inserts != (version == 0) {
		t.Errorf("upsert is %v for version %d", upsert, version)
	}
}

// checkWriteConcern fails unless a write waits for a majority, and may be repeated.
func checkWriteConcern(t *testing.T, s sentCommand) {
	t.Helper()
	concern, _ := field(s.command, "writeConcern").(bson.D)
	if field(concern, "w") != "majority" || len(concern) != 1 {
		t.Errorf("%s: write concern %v, want a majority without a limit", s.name, concern)
	}
	if writeID(s.command) == "" {
		t.Errorf("%s has no number, so it cannot be repeated", s.name)
	}
}
