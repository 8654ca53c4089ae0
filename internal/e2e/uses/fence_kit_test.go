package uses_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
)

// A fencedWrite adds one to the number of a resource, if the fence is valid, and returns
// the new number.
type fencedWrite func(ctx context.Context, resource string, f uint64) (int, error)

// outcome returns the result of a write in a word: the number, "stale", or an error.
func outcome(n int, err error) string {
	switch {
	case errors.Is(err, pawl.ErrStale):
		return "stale"
	case err != nil:
		return err.Error()
	}
	return strconv.Itoa(n)
}

// inMemory returns a fencedWrite in this process.
func inMemory() fencedWrite {
	var guard fence.Memory
	numbers := map[string]int{}
	return func(ctx context.Context, resource string, f uint64) (n int, err error) {
		err = guard.Guard(ctx, resource, f, func(context.Context) error {
			numbers[resource]++
			n = numbers[resource]
			return nil
		})
		return n, err
	}
}

// inDatabase returns a fencedWrite in the database of a URL. Any process can use it.
func inDatabase(url string) (write fencedWrite, end func() error, err error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "redis":
		o, err := goredis.ParseURL(url)
		if err != nil {
			return nil, nil, err
		}
		c := goredis.NewClient(o)
		script := goredis.NewScript(fence.RedisScript(`return redis.call('INCR', KEYS[1])`))
		return func(ctx context.Context, resource string, f uint64) (int, error) {
			n, err := script.Run(ctx, c, []string{"fence:" + resource, "number:" + resource}, f).Int()
			return n, fence.RedisError(err, resource, f)
		}, c.Close, nil
	case "sqlite":
		return inSQL("sqlite", rest+".numbers?_pragma=busy_timeout(10000)&_txlock=immediate", fence.SQLiteTable, fence.CheckSQLite)
	case "postgres":
		database, _, _ := strings.Cut(url, "?") // the query is for the locks' pool
		return inSQL("pgx", database, fence.PostgresTable, func(ctx context.Context, tx *sql.Tx, resource string, f uint64) error {
			return fence.CheckPostgres(ctx, fence.Query(tx.QueryRowContext), resource, f)
		})
	}
	return nil, nil, errors.New("no numbers are kept there")
}

func inSQL(driver, source, table string, check func(ctx context.Context, tx *sql.Tx, resource string, f uint64) error) (fencedWrite, func() error, error) {
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, err
	}
	for _, statement := range []string{table, "CREATE TABLE IF NOT EXISTS numbers (resource text PRIMARY KEY, n integer NOT NULL)"} {
		if _, err := db.ExecContext(background, statement); err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	return func(ctx context.Context, resource string, f uint64) (n int, err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback()
		if err := check(ctx, tx, resource, f); err != nil {
			return 0, err
		}
		err = tx.QueryRowContext(ctx, `INSERT INTO numbers VALUES ($1, 1)
			ON CONFLICT (resource) DO UPDATE SET n = numbers.n + 1 RETURNING n`, resource).Scan(&n)
		if err != nil {
			return 0, err
		}
		return n, tx.Commit()
	}, db.Close, nil
}
