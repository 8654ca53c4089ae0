package fencetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// An Engine is a database with locks, whose transactions can check leases.
type Engine struct {
	Locks    driver.Driver
	Transact func(f func(tx Tx) error) error // runs f in a transaction, which commits if f returns nil
	Sleep    func(time.Duration)             // makes time pass on the clock of the locks
}

// A Tx is a transaction of an engine.
type Tx struct {
	Check func(ctx context.Context, leases ...driver.Lease) error
	Exec  func(statement string) error
	Read  func(query string) (int, error)
}

// Checks has a test for each rule of an engine's lease check. Each needs a new engine.
var Checks = map[string]func(TB, Engine){
	"TheHolder": ChecksTheHolder, "UntilTheEnd": ChecksUntilTheEnd, "EachWrite": ChecksEachWrite,
	"Several": ChecksSeveral, "InAnyOrder": ChecksInAnyOrder, "TheClient": ChecksTheClient,
}

// SQL returns the engine of a pool of database/sql, with the real clock.
func SQL(d driver.Driver, db *sql.DB, check func(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error) Engine {
	return Engine{Locks: d, Sleep: time.Sleep, Transact: func(f func(Tx) error) error {
		ctx := context.Background()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := f(Tx{
			Check: func(ctx context.Context, leases ...driver.Lease) error { return check(ctx, tx, leases...) },
			Exec:  func(statement string) error { _, err := tx.ExecContext(ctx, statement); return err },
			Read:  func(query string) (n int, err error) { err = tx.QueryRowContext(ctx, query).Scan(&n); return n, err },
		}); err != nil {
			return err
		}
		return tx.Commit()
	}}
}

// check checks leases in a new transaction.
func (e Engine) check(ctx context.Context, leases ...driver.Lease) error {
	return e.Transact(func(tx Tx) error { return tx.Check(ctx, leases...) })
}

// createWorkTable creates the table work, with one row: the number 0.
func (e Engine) createWorkTable(t TB) {
	t.Helper()
	must(0, e.Transact(func(tx Tx) error {
		return errors.Join(tx.Exec("CREATE TABLE work (n INT)"), tx.Exec("INSERT INTO work VALUES (0)"))
	}))(t)
}

// ChecksTheHolder tests that a lease check accepts the holder until its lease ends, and
// refuses every other client.
func ChecksTheHolder(t TB, e Engine) {
	t.Helper()
	d, check := e.Locks, func(leases ...driver.Lease) error { return e.check(t.Context(), leases...) }
	job := "job " + rand.Text() // a new name, because an earlier call still holds its own
	c := servertest.Mutex(job)
	c.TTL = time.Hour
	g := servertest.Gets(t, d, c)
	if err := check(Lease(job, g.Fence)); err != nil {
		t.Errorf("the holder: %v", err)
	}
	for name, fence := range map[string]uint64{job: g.Fence - 1, "other": g.Fence} {
		if err := check(Lease(name, fence)); !errors.Is(err, driver.ErrStale) {
			t.Errorf("%s with %d: %v; want ErrStale", name, fence, err)
		}
	}
	g = e.endedLease(t, "ended "+job)
	if err := check(Lease("ended "+job, g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("after the lease has ended: %v; want ErrStale", err)
	}
	if err := check(Lease("", g.Fence)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("without a name: %v; want ErrInvalid", err)
	}
}

// endedLease acquires a lease, waits until it has ended, and returns its grant.
func (e Engine) endedLease(t TB, name string) driver.Grant {
	t.Helper()
	c := servertest.Mutex(name)
	c.TTL = time.Second
	for {
		g, err := e.Locks.Acquire(t.Context(), c)
		e.waitUntilFree(t, name)
		switch {
		case err == nil:
			return g
		case !errors.Is(err, driver.ErrUnavailable): // the request took longer than the TTL
			t.Fatalf("Acquire: %v", err)
		}
		c.Token = driver.NewToken()
	}
}

// waitUntilFree makes time pass until a name has no lease. After slow requests a lease
// lasts seconds longer than its TTL.
func (e Engine) waitUntilFree(t TB, name string) {
	t.Helper()
	for {
		holders := must(e.Locks.Inspect(t.Context(), name))(t).Holders
		if len(holders) == 0 {
			return
		}
		e.Sleep(holders[0].ExpiresIn + time.Millisecond)
	}
}

// ChecksEachWrite has several goroutines read and increment a number, in checked
// transactions that may end long after their leases. No accepted increment may be lost.
func ChecksEachWrite(t TB, e Engine) {
	t.Helper()
	e.createWorkTable(t)
	read := func() (n int, err error) {
		err = e.Transact(func(tx Tx) (err error) { n, err = tx.Read("SELECT n FROM work"); return err })
		return n, err
	}
	increment := func(l driver.Lease, pause time.Duration) error {
		n, err := read()
		if err != nil {
			return err
		}
		time.Sleep(pause)
		return e.Transact(func(tx Tx) error {
			if err := tx.Exec(fmt.Sprint("UPDATE work SET n = ", n+1)); err != nil {
				return err
			}
			return tx.Check(t.Context(), l)
		})
	}
	d := e.Locks
	var mu sync.Mutex
	var all sync.WaitGroup
	accepted, refused := 0, 0
	sawBoth := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return accepted > 0 && refused > 0
	}
	for range 6 {
		all.Go(func() {
			for k := 0; k < 30 || k < 300 && !sawBoth(); k++ {
				unit := 20 * time.Millisecond << (k / 30) // doubles every 30 rounds until both results have occurred
				c := servertest.Mutex("job")
				c.TTL = 3 * unit
				g, err := d.Acquire(t.Context(), c)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				err = increment(Lease("job", g.Fence), time.Duration(k%3)*5*unit)
				mu.Lock()
				switch {
				case err == nil:
					accepted++
				case errors.Is(err, driver.ErrStale), strings.Contains(err.Error(), "repeat the transaction"):
					refused++
				default:
					t.Errorf("an increment: %v", err)
				}
				mu.Unlock()
				_ = d.Release(t.Context(), servertest.Lease(c))
			}
		})
	}
	all.Wait()
	if n, err := read(); err != nil || n != accepted || accepted == 0 || refused == 0 {
		t.Errorf("%d increments were accepted, %d refused, and the number is %d, %v; want both results, and the number of the accepted ones", accepted, refused, n, err)
	}
}

// ChecksUntilTheEnd tests that no other claim is granted between the check of a lease and
// the end of the transaction: neither by force, nor after a break, nor after the end of
// the lease. A request that was abandoned meanwhile must not take effect later.
func ChecksUntilTheEnd(t TB, e Engine) {
	t.Helper()
	e.createWorkTable(t)
	var c driver.Claim
	// On a slow machine the lease may expire before the check.
	for ttl := time.Second; ; ttl *= 2 {
		c = servertest.Mutex(fmt.Sprint("job ", ttl))
		c.TTL = ttl
		g, err := e.Locks.Acquire(t.Context(), c)
		if err == nil {
			err = e.Transact(func(tx Tx) error {
				if err := tx.Exec("UPDATE work SET n = 1"); err != nil {
					return err
				}
				if err := tx.Check(t.Context(), Lease(c.Name, g.Fence)); err != nil {
					return err
				}
				wantError := func(what string, request func(shortCtx context.Context) error) {
					shortCtx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					if request(shortCtx) == nil {
						t.Errorf("%s took effect during the transaction", what)
					}
				}
				next := servertest.Mutex(c.Name)
				acquire := func(shortCtx context.Context) error { _, err := e.Locks.Acquire(shortCtx, next); return err }
				wantError("a break", func(shortCtx context.Context) error {
					return e.Locks.(driver.LeaseBreaker).Break(shortCtx, c.Name, g.Fence, 0, next.Owner)
				})
				next.Force = true
				wantError("a claim by force", acquire)
				e.waitUntilFree(t, c.Name)
				next = servertest.Mutex(c.Name)
				wantError("a claim after the lease", acquire)
				return nil
			})
		}
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrStale) && !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("a checked transaction: %v", err)
		}
	}
	servertest.Gets(t, e.Locks, servertest.Mutex(c.Name))
}

// ChecksSeveral tests that a check of several leases checks each of them.
func ChecksSeveral(t TB, e Engine) {
	t.Helper()
	d, check := e.Locks, func(leases ...driver.Lease) error { return e.check(t.Context(), leases...) }
	a, b, one, two := servertest.Mutex("a"), servertest.Mutex("b"), servertest.Reader("shared"), servertest.Reader("shared")
	leaseA, leaseB := Lease("a", servertest.Gets(t, d, a).Fence), Lease("b", servertest.Gets(t, d, b).Fence)
	shared1, shared2 := Lease("shared", servertest.Gets(t, d, one).Fence), Lease("shared", servertest.Gets(t, d, two).Fence)
	for _, leases := range [][]driver.Lease{{leaseA, leaseB}, {leaseB, leaseA}, {leaseA, leaseA}, {shared2, leaseB, shared1, leaseA}} {
		if err := check(leases...); err != nil {
			t.Errorf("the check of %v: %v", leases, err)
		}
	}
	servertest.Releases(t, d, b)
	servertest.Releases(t, d, one)
	for ended, leases := range map[string][]driver.Lease{`"b"`: {leaseB, leaseA}, `"shared"`: {shared2, leaseA, shared1}, `"new"`: {leaseA, Lease("new", 1)}} {
		if err := check(leases...); !errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), ended) || strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%v; want ErrStale, with the name %s", err, ended)
		}
	}
	if err := check(leaseA, shared2); err != nil {
		t.Errorf("two held leases: %v", err)
	}
	WantInvalid(t, check(), "no lease")
	for _, l := range []driver.Lease{nil, (*pawl.Lease)(nil), new(pawl.Lease)} {
		WantInvalid(t, check(l), "lease is nil", "LeaseOf")
		WantInvalid(t, check(leaseA, l), "lease 2 of 2 is nil", "LeaseOf")
	}
}

// ChecksOtherTables tests that the check of each engine refuses the leases of the other
// drivers, which have other tables in one database, as invalid and not as stale.
func ChecksOtherTables(t TB, engines ...Engine) {
	t.Helper()
	leases := map[driver.Driver]driver.Lease{}
	for _, e := range engines {
		if leases[e.Locks] == nil {
			locks := must(pawl.New(e.Locks, servertest.Patient))(t)
			t.Cleanup(func() { _ = locks.Close() })
			leases[e.Locks] = must(locks.Mutex("job").Lock(t.Context()))(t)
		}
	}
	for i, e := range engines {
		for d, l := range leases {
			err := e.check(t.Context(), l)
			if d != e.Locks {
				WantInvalid(t, err, "other tables")
			} else if err != nil {
				t.Errorf("engine %d, with its own lease: %v", i, err)
			}
		}
	}
}

// WantInvalid tests that an error matches ErrInvalid and has these texts.
func WantInvalid(t TB, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if !errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v; want ErrInvalid, with %q", err, word)
		}
	}
}

// ChecksInAnyOrder makes transactions check the same leases in opposite orders, during
// renewals. No transaction may fail because of another.
func ChecksInAnyOrder(t TB, e Engine) {
	t.Helper()
	d := e.Locks
	var leases []driver.Lease
	var refs []driver.LeaseRef
	for _, name := range []string{"a", "b", "c"} {
		c := servertest.Mutex(name)
		c.TTL = time.Hour
		leases = append(leases, Lease(name, servertest.Gets(t, d, c).Fence))
		refs = append(refs, servertest.Lease(c))
	}
	backward := slices.Clone(leases)
	slices.Reverse(backward)
	var all sync.WaitGroup
	for _, order := range [][]driver.Lease{leases, backward, leases, backward} {
		all.Go(func() {
			for range 50 {
				if err := e.check(t.Context(), order...); err != nil {
					t.Errorf("the check of %v: %v", order, err)
					return
				}
			}
		})
	}
	stop, renewed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(renewed)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = d.Renew(t.Context(), refs) // a row may be locked
			}
		}
	}()
	all.Wait()
	close(stop)
	<-renewed
}

// ChecksTheClient tests that a check refuses a lease that its client has released or
// lost, even if the backend still shows it as held, and a lease of another backend. Some
// leases are in a namespace. It closes the driver.
func ChecksTheClient(t TB, e Engine) {
	t.Helper()
	check, locks := e.check, must(pawl.New(e.Locks, servertest.Patient))(t)
	t.Cleanup(func() { _ = locks.Close() })
	tenant := locks.Namespace("acme")
	passed := tenant.Mutex("passed")
	first := must(passed.Lock(t.Context()))(t)
	next := make(chan *pawl.Lease)
	go func() {
		l, err := passed.Lock(t.Context())
		if err != nil {
			t.Errorf("Lock: %v", err)
		}
		next <- l
	}()
	for len(must(tenant.Inspect(t.Context(), "passed"))(t).Holders) == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // the second Lock now waits
	if err := first.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := check(t.Context(), first); !errors.Is(err, driver.ErrStale) || !errors.Is(err, pawl.ErrReleased) {
		t.Errorf("a released lease, which the client passed on: %v; want ErrStale and ErrReleased", err)
	}
	if err := check(t.Context(), <-next); err != nil {
		t.Errorf("the next lease: %v", err)
	}

	err := pawl.All(locks.Mutex("y"), locks.Mutex("x")).Do(t.Context(), func(ctx context.Context) error {
		x, _ := pawl.LeaseOf(ctx, "x")
		y, _ := pawl.LeaseOf(ctx, "y")
		if err := check(ctx, y, x); err != nil {
			t.Errorf("inside All: %v", err)
		}
		if err := locks.Break(t.Context(), "y", y.Fence(), &pawl.BreakOptions{Delay: -1}); err != nil {
			t.Errorf("Break: %v", err)
		}
		<-ctx.Done()
		err := check(ctx, x, y)
		if !errors.Is(err, driver.ErrStale) || !errors.Is(err, pawl.ErrLost) || !strings.Contains(err.Error(), `"y"`) {
			t.Errorf("after a break, with the ctx of Do: %v; want ErrStale, ErrLost", err)
		}
		return err
	})
	if !errors.Is(err, driver.ErrStale) || !errors.Is(err, pawl.ErrLost) {
		t.Errorf("Do: %v; want ErrStale, ErrLost", err)
	}

	client, _ := NewMemoryClients(t)
	WantInvalid(t, check(t.Context(), must(client().Mutex("x").Lock(t.Context()))(t)), "of memory")
}

// Lease returns a lease with this name and fence, for a check.
func Lease(name string, fence uint64) driver.Lease { return lease{name, fence} }

type lease struct {
	name  string
	fence uint64
}

func (l lease) StoredName() string { return l.name }
func (l lease) Fence() uint64      { return l.fence }
