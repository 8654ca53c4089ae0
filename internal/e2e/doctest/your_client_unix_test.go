//go:build unix

package doctest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the drivers of database/sql
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/mongolock"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/natslock"
	"github.com/pawl-go/pawl/postgreslock"
	"github.com/pawl-go/pawl/redislock"
	"github.com/pawl-go/pawl/redislock/redlock"
)

// TestYourClientLocks runs the code of docs/your-client.md on real servers.
func TestYourClientLocks(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, use user) error{
		"pgx pool": func(t *testing.T, use user) error {
			return overPgxPool(t.Context(), pgtest.Start(t).URL("postgres"), use)
		},
		"pgx pool behind PgBouncer": func(t *testing.T, use user) error {
			pooler := pgtest.StartPooler(t, pgtest.Start(t), "transaction")
			return overPgxPoolBehindPgBouncer(t.Context(), pooler.URL("postgres"), use)
		},
		"database/sql over pgx": func(t *testing.T, use user) error {
			return overPgxAndDatabaseSQL(pgtest.Start(t).URL("postgres"), use)
		},
		"MariaDB": func(t *testing.T, use user) error {
			return overMySQL(mysqltest.Start(t).DSN(mysqltest.Database), use)
		},
		"go-redis": func(t *testing.T, use user) error {
			return overGoRedis(redistest.Start(t).Addr, use)
		},
		"rueidis": func(t *testing.T, use user) error {
			return overRueidis(redistest.Start(t).Addr, use)
		},
		"several rueidis": func(t *testing.T, use user) error {
			var clients [3]rueidis.Client
			for i := range clients {
				c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr}})
				if err != nil {
					return err
				}
				t.Cleanup(c.Close)
				clients[i] = c
			}
			return overSeveralRueidis(clients[0], clients[1], clients[2], use)
		},
		"FerretDB": func(t *testing.T, use user) error {
			return overMongo(t.Context(), "mongodb://"+startFerretDB(t), use)
		},
		"etcd": func(t *testing.T, use user) error {
			return overEtcd(etcdtest.Start(t, 1).Addrs(), use)
		},
		"NATS": func(t *testing.T, use user) error {
			return overNATS("nats://"+natstest.Start(t, "").Addr, use)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			used := false
			err := run(t, func(locks *pawl.Client) (err error) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // only a hang takes so long
				defer cancel()
				// The test machine may pause for longer than the default timeout.
				for again := true; again; again = errors.Is(err, pawl.ErrUnavailable) && ctx.Err() == nil {
					err = locks.Mutex("x").Do(ctx, func(ctx context.Context) error {
						_, used = pawl.FenceOf(ctx, "x")
						return nil
					})
				}
				return err
			})
			if err != nil || !used {
				t.Errorf("used: %v, %v", used, err)
			}
		})
	}
}

// Each function below opens a client as a program does, and uses locks over it.

type user = func(locks *pawl.Client) error

// with is the code that the page leaves out: the end of each function except the first.
func with(d driver.Driver, err error, use user) error {
	if err != nil {
		return err
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	return use(locks)
}

func overPgxPool(ctx context.Context, url string, use user) error {
	pool, err := pgxpool.New(ctx, url) // a pool for locks alone
	if err != nil {
		return err
	}
	defer pool.Close()
	d, err := postgreslock.New(pool, nil)
	if err != nil {
		return err
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		return err
	}
	defer locks.Close() // runs before pool.Close
	return use(locks)
}

func overPgxPoolBehindPgBouncer(ctx context.Context, url string, use user) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // or QueryExecModeCacheDescribe
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	d, err := postgreslock.New(pool, nil)
	return with(d, err, use)
}

func overPgxAndDatabaseSQL(url string, use user) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	d, err := postgreslock.NewDB(db, nil)
	return with(d, err, use)
}

func overMySQL(dsn string, use user) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16) // the default keeps two, and connects again for the others
	d, err := mysqllock.New(db, nil)
	return with(d, err, use)
}

func overGoRedis(addr string, use user) error {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	d, err := goredislock.New(client, nil)
	return with(d, err, use)
}

func overRueidis(addr string, use user) error {
	o := rueidis.ClientOption{InitAddress: []string{addr}}
	tracking := redislock.Track(&o) // before NewClient; for one driver only
	client, err := rueidis.NewClient(o)
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := redislock.New(client, &redislock.Options{Tracking: tracking})
	return with(d, err, use)
}

func overSeveralRueidis(a, b, c rueidis.Client, use user) error {
	d, err := redlock.New(a, b, c) // a rueidis.Client each; they replicate nothing
	return with(d, err, use)
}

func overMongo(ctx context.Context, uri string, use user) error {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer client.Disconnect(context.WithoutCancel(ctx))
	d, err := mongolock.New(client.Database("app"), nil)
	return with(d, err, use)
}

func overEtcd(members []string, use user) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            members, // all of them
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    6 * time.Second, // finds a dead connection within 10 s
		DialKeepAliveTimeout: 4 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := etcdlock.New(client, nil)
	return with(d, err, use)
}

func overNATS(url string, use user) error {
	nc, err := nats.Connect(url,
		nats.MaxReconnects(-1),           // the default gives up for ever
		nats.ReconnectBufSize(-1),        // Pawl repeats its requests itself
		nats.PingInterval(2*time.Second), // finds a dead connection within seconds
	)
	if err != nil {
		return err
	}
	defer nc.Close()
	d, err := natslock.New(nc, nil)
	return with(d, err, use)
}
