package postgreslock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

const listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"

func count(t testing.TB, c *pgx.Conn, sql string) (n int) {
	t.Helper()
	noError(t, c.QueryRow(ctx, sql).Scan(&n))
	return n
}

// The connection that listens is lost, and the server is killed.
func TestAWatchOutlivesItsConnectionAndTheServer(t *testing.T) {
	nightly(t, "a server that crashes")
	t.Parallel()
	server := pgtest.Start(t, "fsync=on")
	a, b := openDriver(t, server.URL("postgres")), openDriver(t, server.URL("postgres"))
	tells, c := servertest.Watch(t, b, "job"), mutex("job")
	gets(t, a, c)
	tells("a grant")
	exec(t, conn(t, server.URL("postgres")), strings.Replace(listening, "count(*)", "pg_terminate_backend(pid)", 1))
	releases(t, a, c)
	tells("a release, while nobody listened")
	eventually(t, "changes are pushed again", func() bool { return b.Properties().PushesChanges })
	c = mutex("job")
	gets(t, a, c)
	tells("a grant to who listens again")
	server.Kill()
	tells("the loss of the server") // so that watchers read the entry
	if b.Properties().PushesChanges {
		t.Error("PushesChanges is true, and there is no server")
	}
	server.Run()
	eventually(t, "changes are pushed again", func() bool { return b.Properties().PushesChanges })
	eventually(t, "it is released", func() bool { return a.Release(ctx, lease(c)) == nil })
	tells("a release, after the server was away")
}

// A driver listens only while it holds, waits or watches.
func TestTheConnectionThatListensIsOnlyThereWhileSomethingHoldsOrWatches(t *testing.T) {
	nightly(t, "it waits for 10 s")
	t.Parallel()
	_, url, _ := fresh(t)
	d, c := openDriver(t, url), conn(t, url)
	if _, err := d.Inspect(ctx, "job"); err != nil || count(t, c, listening) != 0 {
		t.Errorf("%v; it listens before it holds", err)
	}
	claim, stop := mutex("job"), func() {}
	for what, step := range map[string]struct{ begin, end func() }{
		"holds":   {func() { gets(t, d, claim) }, func() { releases(t, d, claim) }},
		"watches": {func() { stop = d.Watch("job", func() {}) }, func() { stop() }},
	} {
		step.begin()
		eventually(t, "it listens while it "+what, func() bool { return count(t, c, listening) == 1 })
		step.end()
		eventually(t, "it listens no more", func() bool { return count(t, c, listening) == 0 })
	}
}

// Only a change of a watched name costs notifications, and no statement.
func TestANameWithoutWatchersSendsNoSignals(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, texts := traced(t, url)
	cycle := func(name string) (statements, notifies int) {
		before := texts.count("")
		was := texts.count("pg_notify")
		c := mutex(name)
		gets(t, d, c)
		releases(t, d, c)
		return texts.count("") - before, texts.count("pg_notify") - was
	}
	// A busy machine, or the tidying of old names, may take a statement more, even
	// several times, but not each time.
	best := func(name string) (statements, notifies int) {
		statements = 1000
		for tries := 0; tries < 200 && statements > 2; tries++ {
			s, n := cycle(name)
			if s < statements {
				statements, notifies = s, n
			}
		}
		return statements, notifies
	}
	if s, n := best("other"); s != 2 || n != 0 {
		t.Errorf("a cycle takes %d statements, %d of which notify; want 2 and none", s, n)
	}
	servertest.Watch(t, openDriver(t, url), "job")
	if s, n := best("job"); s != 2 || n != 2 {
		t.Errorf("a cycle of a name that is watched takes %d statements, %d of which notify; want 2", s, n)
	}
	if s, n := best("other"); s != 2 || n != 0 {
		t.Errorf("beside it a cycle takes %d statements, %d of which notify; want 2 and none", s, n)
	}
}

// traced is a driver over a pool whose statements are recorded.
func traced(t *testing.T, url string) (*postgreslock.Driver, *texts) {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	noError(t, err)
	all := &texts{}
	config.ConnConfig.Tracer = all
	pool, err := pgxpool.NewWithConfig(ctx, config)
	noError(t, err)
	t.Cleanup(pool.Close)
	d := opened(t)(asDriver(postgreslock.New(pool, &postgreslock.Options{NoPush: true})))
	t.Cleanup(func() { _ = d.Close() })
	return d, all
}

// texts are the statements of a pool.
type texts struct {
	mu  sync.Mutex
	all []string
}

func (s *texts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d.SQL)
	return ctx
}

func (*texts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *texts) count(with string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sql := range s.all {
		if strings.Contains(sql, with) {
			n++
		}
	}
	return n
}

// Behind PgBouncer in transaction mode, and without push, a watch polls.
func TestWhereNothingIsPushedAWatchAsks(t *testing.T) {
	t.Parallel()
	server, direct, name := fresh(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	for what, url := range map[string]string{"pooled": pooler.URL(name), "quiet": direct + "?push=false"} {
		locks, other := client(t, url), openDriver(t, direct)
		if locks.Properties().PushesChanges {
			t.Errorf("%s: PushesChanges is true", what)
		}
		c := mutex(what)
		run, stop := context.WithTimeout(ctx, 2*time.Minute) // only a hang takes so long
		defer stop()
		seen := 0
		for e, err := range locks.Watch(run, what) {
			noError(t, err)
			switch seen++; seen {
			case 1:
				gets(t, other, c)
				continue
			case 2:
				if len(e.Holders) != 1 {
					t.Errorf("%s: it saw %+v; want a holder", what, e)
				}
			}
			break
		}
		if seen != 2 {
			t.Errorf("%s: it saw %d entries; want 2", what, seen)
		}
		if what == "pooled" {
			var marks int
			err := conn(t, direct).QueryRow(ctx, "SELECT count(*) FROM pawl.locks WHERE name = $1 AND fence = 0", what).Scan(&marks)
			if err != nil || marks != 0 {
				t.Errorf("%d rows, %v, were made for a watch that hears nothing", marks, err)
			}
		}
	}
}
