package zero_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/postgreslock"
	"github.com/pawl-go/pawl/quorumlock"
	"github.com/pawl-go/pawl/redislock/redlock"
	"github.com/pawl-go/pawl/sqlitelock"
)

// Users made these mistakes. At that time Pawl panicked, or accepted them.
func TestMistakesAreErrInvalid(t *testing.T) {
	ctx := t.Context()
	locks, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer locks.Close()
	lease, err := locks.Mutex("held").Lock(ctx)
	noError(t, err)
	defer lease.Release(ctx)
	errOf := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"postgreslock.New without a pool":       errOf(postgreslock.New(nil, nil)),
		"postgreslock.NewDB without a database": errOf(postgreslock.NewDB(nil, nil)),
		"go-redis: a typed nil":                 errOf(goredislock.New((*goredis.Client)(nil), nil)),
		"go-redis: a typed nil of a cluster":    errOf(goredislock.New((*goredis.ClusterClient)(nil), nil)),
		"a quorum with a typed nil":             errOf(quorumlock.New([]driver.Driver{memlock.New(nil), (*locktable.Driver)(nil), memlock.New(nil)}, nil)),
		"redlock without clients":               errOf(redlock.New(nil, nil, nil)),
		"a dashboard of a zero client":          errOf(dashboard.New(&pawl.Client{}, nil)),
		"PostgreSQL: no transaction":            postgreslock.CheckLease(ctx, nil, lease),
		"PostgreSQL: a typed nil":               postgreslock.CheckLease(ctx, pgx.Tx((*nilTx)(nil)), lease),
		"PostgreSQL: no transaction of sql":     postgreslock.CheckLeaseSQL(ctx, nil, lease),
		"PostgreSQL: no lease":                  postgreslock.CheckLease(ctx, &nilTx{}, nil),
		"MySQL: no transaction":                 mysqllock.CheckLease(ctx, nil, lease),
		"SQLite: no transaction":                sqlitelock.CheckLease(ctx, nil, lease),
		"a fence without a query":               fence.CheckPostgres(ctx, nil, "x", 1),
		"a fence without a transaction":         fence.CheckMySQL(ctx, nil, "x", 1),
		"WithHealth without a function":         errOf(locks.Mutex("x", pawl.WithHealth(nil)).TryLock(ctx)),
		"a nil ctx":                             errOf(pawl.Open(nil, "mem:", nil)), //nolint:staticcheck // that is the mistake
		"a nil ctx of a driver":                 errOf(driver.Open(nil, "mem:")),    //nolint:staticcheck // that is the mistake
		"a client over a typed nil":             errOf(pawl.New((*locktable.Driver)(nil), nil)),
		"a scheduler's job without a schedule":  skipped(locks, nil),
	} {
		if !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v; want ErrInvalid", what, err)
		}
	}
}

// nilTx is a transaction of pgx without any of its methods.
type nilTx struct{ pgx.Tx }

// skipped runs a job, and returns the error with which it was skipped.
func skipped(locks *pawl.Client, schedule cronlock.Schedule) (reason error) {
	o := &cronlock.Options{Skipped: func(_ string, err error) { reason = err }}
	cronlock.NewJob(locks, "job", schedule, o, func(context.Context) error { return nil }).Run()
	return reason
}
