package zero_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/mongolock"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/natslock"
	"github.com/pawl-go/pawl/postgreslock"
	"github.com/pawl-go/pawl/quorumlock"
	"github.com/pawl-go/pawl/redislock"
	"github.com/pawl-go/pawl/sqlitelock"
)

// noServer is an address without a server.
const noServer = "127.0.0.1:1"

// realArguments makes arguments of the types whose values callers never omit.
var realArguments = map[reflect.Type]func() reflect.Value{
	reflect.TypeFor[http.ResponseWriter](): func() reflect.Value { return reflect.ValueOf(httptest.NewRecorder()) },
	reflect.TypeFor[*http.Request](): func() reflect.Value {
		return reflect.ValueOf(httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	},
	reflect.TypeFor[fmt.State](): func() reflect.Value { return reflect.ValueOf(formatState{}) },
}

type formatState struct{}

func (formatState) Write(b []byte) (int, error) { return len(b), nil }
func (formatState) Width() (int, bool)          { return 0, false }
func (formatState) Precision() (int, bool)      { return 0, false }
func (formatState) Flag(int) bool               { return false }

// receivers returns the constructors of the types whose zero value is of no use. The
// addresses have no server, except that of NATS, whose client needs a connection.
func receivers(t *testing.T) map[string]func() any {
	t.Helper()
	must := func(x any, err error) any {
		noError(t, err)
		if c, ok := x.(interface{ Close() error }); ok {
			t.Cleanup(func() { _ = c.Close() })
		}
		return x
	}
	locks := must(pawl.New(memlock.New(nil), nil)).(*pawl.Client)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	redis, _ := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{noServer}, ForceSingleClient: true, DisableCache: true})
	etcd := must(clientv3.New(clientv3.Config{Endpoints: []string{noServer}, Logger: zap.NewNop()})).(*clientv3.Client)
	nc := must(nats.Connect(natstest.Start(t, "").Addr)).(*nats.Conn)
	pool := must(pgxpool.New(t.Context(), "postgres://"+noServer+"/x")).(*pgxpool.Pool)
	db := must(sql.Open("mysql", "u@tcp("+noServer+")/x")).(*sql.DB)
	m := must(mongo.Connect(options.Client().ApplyURI("mongodb://" + noServer).SetServerSelectionTimeout(time.Second))).(*mongo.Client)
	client := goredis.NewClient(&goredis.Options{Addr: noServer})
	t.Cleanup(func() {
		redis.Close()
		nc.Close()
		pool.Close()
		_ = m.Disconnect(context.Background())
	})
	silent := &cronlock.Options{Skipped: func(string, error) {}}
	file := filepath.Join(t.TempDir(), "locks.db")
	open := func() *pawl.Client { return must(pawl.New(memlock.New(nil), nil)).(*pawl.Client) }
	return map[string]func() any{
		"pawl.Client":    func() any { return open() },
		"pawl.Mutex":     func() any { return open().Mutex("x") },
		"pawl.RWMutex":   func() any { return open().RWMutex("x") },
		"pawl.Semaphore": func() any { return open().Semaphore("x", 2) },
		"pawl.Election":  func() any { return open().Election("x") },
		"pawl.Once":      func() any { return open().Once("x") },
		"pawl.Lease":     func() any { return must(open().Mutex("x").TryLock(t.Context())) },

		"cronlock.Elector":  func() any { return cronlock.NewElector(ended, locks.Election("x"), silent) },
		"cronlock.Job":      func() any { return cronlock.NewJob(locks, "x", nil, silent, nil) },
		"cronlock.Locker":   func() any { return cronlock.NewLocker(locks, silent) },
		"dashboard.Handler": func() any { return must(dashboard.New(locks, nil)) },
		"locktable.GroupedDriver": func() any {
			return locktable.NewGrouped(access.Table(memlock.NewMemory(nil)).(locktable.Grouped), "x")
		},
		"locktable.Driver": func() any { return locktable.New(access.Table(memlock.NewMemory(nil)).(locktable.Table), "x") },
		"memlock.Memory":   func() any { return memlock.NewMemory(nil) },

		"etcdlock.Driver":     func() any { return must(etcdlock.New(etcd, nil)) },
		"goredislock.Driver":  func() any { return must(goredislock.New(client, nil)) },
		"memlock.Driver":      func() any { return memlock.New(nil) },
		"mongolock.Driver":    func() any { return must(mongolock.New(m.Database("x"), nil)) },
		"mysqllock.Driver":    func() any { return must(mysqllock.New(db, nil)) },
		"natslock.Driver":     func() any { return must(natslock.New(nc, nil)) },
		"postgreslock.Driver": func() any { return must(postgreslock.New(pool, nil)) },
		"quorumlock.Driver":   func() any { return must(quorumlock.New([]driver.Driver{memlock.New(nil)}, nil)) },
		"redislock.Driver":    func() any { return must(redislock.New(redis, nil)) },
		"sqlitelock.Driver":   func() any { return must(sqlitelock.OpenFile(t.Context(), file, nil)) },
	}
}
