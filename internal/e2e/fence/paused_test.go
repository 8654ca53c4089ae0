package fence_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/redistest"
)

// ofDatabase runs the story of the paused holder in a transaction.
func ofDatabase(t *testing.T, db *sql.DB, table, update string, check check) {
	t.Helper()
	for _, statement := range []string{table, "CREATE TABLE report (body varchar(100))", "INSERT INTO report VALUES ('')"} {
		must(db.ExecContext(t.Context(), statement))(t)
	}
	fencetest.Story(t, fencetest.Place{
		Write: func(lease *pawl.Lease, text string) error {
			tx := must(db.BeginTx(t.Context(), nil))(t)
			defer tx.Rollback()
			if err := check(t.Context(), tx, lease.Name(), lease.Fence()); err != nil {
				return err
			}
			must(tx.ExecContext(t.Context(), update, text))(t)
			return tx.Commit()
		},
		Read: func() (body string) {
			must(0, db.QueryRowContext(t.Context(), "SELECT body FROM report").Scan(&body))(t)
			return body
		},
	})
}

func TestAPausedHolderIsRefusedBySQLite(t *testing.T) {
	db := must(sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db")))(t)
	defer db.Close()
	ofDatabase(t, db, fence.SQLiteTable, "UPDATE report SET body = ?", fence.CheckSQLite)
}

func TestAPausedHolderIsRefusedByPostgres(t *testing.T) {
	db := must(sql.Open("pgx", postgres(t)))(t)
	defer db.Close()
	ofDatabase(t, db, fence.PostgresTable, "UPDATE report SET body = $1", checkPostgres)
}

func TestAPausedHolderIsRefusedByMySQL(t *testing.T) {
	s := mysqltest.Shared(t)
	ofDatabase(t, s.Open(t, s.NewDatabase(t)), fence.MySQLTable, "UPDATE report SET body = ?", fence.CheckMySQL)
}

func TestAPausedHolderIsRefusedByRedis(t *testing.T) {
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Start(t).Addr})
	defer c.Close()
	script := goredis.NewScript(fence.RedisScript(`return redis.call('SET', KEYS[1], ARGV[1])`))
	fencetest.Story(t, fencetest.Place{
		Write: func(lease *pawl.Lease, text string) error {
			_, err := script.Run(t.Context(), c, []string{"fence:{report}", "{report}"}, lease.Fence(), text).Result()
			return fence.RedisError(err, lease.Name(), lease.Fence())
		},
		Read: func() string { return c.Get(t.Context(), "{report}").Val() },
	})
}

func TestAPausedHolderIsRefusedByMongoDB(t *testing.T) {
	c := collection(t)
	must(c.InsertOne(t.Context(), bson.M{"_id": "report"}))(t)
	fencetest.Story(t, fencetest.Place{
		Write: func(lease *pawl.Lease, text string) error {
			filter, update, err := fence.Mongo(lease.Name(), lease.Fence())
			if err != nil {
				return err
			}
			filter["_id"] = "report"
			update["$set"] = bson.M{"body": text}
			done, err := c.UpdateOne(t.Context(), filter, update)
			if err == nil && done.MatchedCount == 0 {
				return lookAgain(t.Context(), c, "report", fence.MongoSeen, lease.Fence())
			}
			return err
		},
		Read: func() string {
			var report struct{ Body string }
			must(0, c.FindOne(t.Context(), bson.M{"_id": "report"}).Decode(&report))(t)
			return report.Body
		},
	})
}
