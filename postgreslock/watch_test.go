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

const countListeners = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"

func count(t testing.TB, c *pgx.Conn, sql string) (n int) {
	t.Helper()
	noError(t, c.QueryRow(ctx, sql).Scan(&n))
	return n
}

// A watch outlives the loss of its listening connection, and a crash of the server.
func TestAWatchOutlivesItsConnectionAndTheServer(t *testing.T) {
	skipIfShort(t, "a server that crashes")
	t.Parallel()
	server := pgtest.Start(t, "fsync=on")
	d, watcher := openDriver(t, server.URL("postgres")), openDriver(t, server.URL("postgres"))
	servertest.WatchOutlives(t, d, watcher,
		func() {
			exec(t, conn(t, server.URL("postgres")), strings.Replace(countListeners, "count(*)", "pg_terminate_backend(pid)", 1))
		},
		func() {
			server.Kill()
			eventually(t, "without a server PushesChanges is false", func() bool { return !watcher.Properties().PushesChanges })
			server.Run()
		})
}

// A driver listens only while it holds, waits or watches.
func TestADriverListensOnlyWhileItHoldsOrWatches(t *testing.T) {
	skipIfShort(t, "it waits for 10 s")
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, c := openDriver(t, url), conn(t, url)
	if _, err := d.Inspect(ctx, "job"); err != nil || count(t, c, countListeners) != 0 {
		t.Errorf("%v; the driver listens before it holds a lease", err)
	}
	claim, stop := mutex("job"), func() {}
	for what, step := range map[string]struct{ begin, end func() }{
		"holds":   {func() { gets(t, d, claim) }, func() { releases(t, d, claim) }},
		"watches": {func() { stop = d.Watch("job", func() {}) }, func() { stop() }},
	} {
		step.begin()
		eventually(t, "the driver listens while it "+what, func() bool { return count(t, c, countListeners) == 1 })
		step.end()
		eventually(t, "the driver listens no more", func() bool { return count(t, c, countListeners) == 0 })
	}
}

// A change of a watched name sends its notifications in the same statement. A change of
// another name sends none.
func TestANameWithoutWatchersSendsNoSignals(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, log := openTraced(t, url)
	// A busy machine, or the tidying of old names, may send additional statements in some
	// cycles.
	fewest := func(name string) (statements, notifies int) {
		statements = 1000
		for tries := 0; tries < 200 && statements > 2; tries++ {
			before, notifiesBefore := log.count(""), log.count("pg_notify")
			cycle(t, d, name)
			if n := log.count("") - before; n < statements {
				statements, notifies = n, log.count("pg_notify")-notifiesBefore
			}
		}
		return statements, notifies
	}
	if s, n := fewest("other"); s != 2 || n != 0 {
		t.Errorf("a cycle takes %d statements, %d of which notify; want 2 and none", s, n)
	}
	servertest.Watch(t, openDriver(t, url), "job")
	if s, n := fewest("job"); s != 2 || n != 2 {
		t.Errorf("a cycle of a watched name takes %d statements, %d of which notify; want 2 and 2", s, n)
	}
	if s, n := fewest("other"); s != 2 || n != 0 {
		t.Errorf("a cycle of another name takes %d statements, %d of which notify; want 2 and none", s, n)
	}
}

// openTraced opens a driver over a pool whose statements are recorded.
func openTraced(t *testing.T, url string) (*postgreslock.Driver, *statementLog) {
	t.Helper()
	log := &statementLog{}
	pool := poolOf(t, url, 4, func(c *pgxpool.Config) { c.ConnConfig.Tracer = log })
	return driverOver(t, pool, &postgreslock.Options{NoPush: true}), log
}

// A statementLog records the statements of a pool.
type statementLog struct {
	mu  sync.Mutex
	all []string
}

func (s *statementLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d.SQL)
	return ctx
}

func (*statementLog) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statementLog) count(with string) (n int) {
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
func TestWithoutPushAWatchPolls(t *testing.T) {
	t.Parallel()
	server, direct, name := freshDatabase(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	for what, url := range map[string]string{"pooled": pooler.URL(name), "quiet": direct + "?push=false"} {
		locks, other := client(t, url), openDriver(t, direct)
		if locks.Properties().PushesChanges {
			t.Errorf("%s: PushesChanges is true", what)
		}
		c := mutex(what)
		watchCtx, stop := context.WithTimeout(ctx, 2*time.Minute) // only a hang takes so long
		defer stop()
		for e, err := range locks.Watch(watchCtx, what) {
			noError(t, err)
			if len(e.Holders) > 0 {
				break
			}
			gets(t, other, c)
		}
		noError(t, watchCtx.Err()) // the watch has returned the holder
		if what == "pooled" {
			var rows int
			err := conn(t, direct).QueryRow(ctx, "SELECT count(*) FROM pawl.locks WHERE name = $1 AND fence = 0", what).Scan(&rows)
			if err != nil || rows != 0 {
				t.Errorf("%d rows, %v, were created for a watch without push", rows, err)
			}
		}
	}
}
