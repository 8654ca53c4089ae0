package fence_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// A place is where two holders of one lock write a report to.
type place struct {
	write func(lease *pawl.Lease, text string) error
	read  func() string
}

// story is what happens to a holder that is paused past its TTL: its write is refused. It
// is told with what was really answered, and is the same everywhere. docs/fencing.md
// shows it.
func story(t *testing.T, p place) {
	t.Helper()
	var told strings.Builder
	client, sleep := memory(t)
	write := func(who string, lease *pawl.Lease, text string) {
		answer := "ok"
		if err := p.write(lease, text); err != nil {
			answer = err.Error()
		}
		fmt.Fprintf(&told, "%s writes %q with fence %d:\n    %s\n", who, text, lease.Fence(), answer)
	}
	one := must(client().Mutex("report", pawl.WithTTL(30*time.Second)).Lock(t.Context()))(t)
	write("one", one, "first draft")
	fmt.Fprintln(&told, "one is paused, and its lease of 30s runs out")
	sleep(31 * time.Second)
	two := must(client().Mutex("report", pawl.WithTTL(30*time.Second)).Lock(t.Context()))(t)
	write("two", two, "second draft")
	fmt.Fprintln(&told, "one goes on, and still believes that it holds the lock:", one.Err() == nil)
	write("one", one, "first draft, corrected")
	write("two", two, "third draft")
	fmt.Fprintf(&told, "stored: %q\n", p.read())

	want := must(os.ReadFile(filepath.Join("testdata", "paused.txt")))(t)
	if told.String() != string(want) {
		t.Errorf("it was told:\n%s\nwant:\n%s", told.String(), want)
	}
}

func TestAPausedHolderIsRefusedByMemory(t *testing.T) {
	var guard fence.Memory
	stored := ""
	story(t, place{
		write: func(lease *pawl.Lease, text string) error {
			return guard.Guard(t.Context(), lease.Name(), lease.Fence(), func(context.Context) error {
				stored = text
				return nil
			})
		},
		read: func() string { return stored },
	})
}

// ofDatabase is the story in a transaction.
func ofDatabase(t *testing.T, db *sql.DB, table, update string, check check) {
	t.Helper()
	for _, statement := range []string{table, "CREATE TABLE report (body varchar(100))", "INSERT INTO report VALUES ('')"} {
		must(db.ExecContext(t.Context(), statement))(t)
	}
	story(t, place{
		write: func(lease *pawl.Lease, text string) error {
			tx := must(db.BeginTx(t.Context(), nil))(t)
			defer tx.Rollback()
			if err := check(t.Context(), tx, lease.Name(), lease.Fence()); err != nil {
				return err
			}
			must(tx.ExecContext(t.Context(), update, text))(t)
			return tx.Commit()
		},
		read: func() (body string) {
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
	db := must(sql.Open("pgx", pgtest.Start(t).Database("app")))(t)
	defer db.Close()
	ofDatabase(t, db, fence.PostgresTable, "UPDATE report SET body = $1", checkPostgres)
}

func TestAPausedHolderIsRefusedByMySQL(t *testing.T) {
	s := mysqltest.Start(t)
	ofDatabase(t, s.Open(t, s.NewDatabase(t)), fence.MySQLTable, "UPDATE report SET body = ?", fence.CheckMySQL)
}

func TestAPausedHolderIsRefusedByRedis(t *testing.T) {
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Start(t).Addr})
	defer c.Close()
	script := goredis.NewScript(fence.RedisScript(`return redis.call('SET', KEYS[1], ARGV[1])`))
	story(t, place{
		write: func(lease *pawl.Lease, text string) error {
			_, err := script.Run(t.Context(), c, []string{"fence:{report}", "{report}"}, lease.Fence(), text).Result()
			return fence.RedisError(err, lease.Name(), lease.Fence())
		},
		read: func() string { return c.Get(t.Context(), "{report}").Val() },
	})
}

func TestAPausedHolderIsRefusedByMongoDB(t *testing.T) {
	c := collection(t)
	must(c.InsertOne(t.Context(), bson.M{"_id": "report"}))(t)
	story(t, place{
		write: func(lease *pawl.Lease, text string) error {
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
		read: func() string {
			var report struct{ Body string }
			must(0, c.FindOne(t.Context(), bson.M{"_id": "report"}).Decode(&report))(t)
			return report.Body
		},
	})
}

func TestAPausedHolderIsRefusedOverHTTP(t *testing.T) {
	stored := ""
	s := httptest.NewServer(fence.Handler(new(fence.Memory), nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stored = string(body)
	})))
	defer s.Close()
	client := &http.Client{Transport: &fence.Transport{}}
	story(t, place{
		write: func(lease *pawl.Lease, text string) error {
			r := must(http.NewRequestWithContext(lease.Context(), http.MethodPut, s.URL, strings.NewReader(text)))(t)
			answer := must(client.Do(r))(t)
			defer answer.Body.Close()
			return fence.ResponseError(answer)
		},
		read: func() string { return stored },
	})
}

func TestAPausedHolderIsRefusedByS3(t *testing.T) {
	b := startS3(t)
	story(t, place{
		write: func(lease *pawl.Lease, text string) error {
			return fence.UpdateObject(t.Context(), b, lease.Name(), lease.Fence(), report(lease.Fence(), text))
		},
		read: func() string {
			_, text, _ := strings.Cut(string(must(b.Get(t.Context(), "report"))(t).Body), "\n")
			return strings.TrimSpace(text)
		},
	})
}

// The same through aws-sdk-go-v2 and minio-go.
func TestAPausedHolderIsRefusedByS3ThroughItsClients(t *testing.T) {
	b := startS3(t)
	program := testservers.Build(t, "s3clients")
	for _, client := range []string{"aws", "minio"} {
		t.Run(client, func(t *testing.T) {
			run := func(args ...string) (said string, err error) {
				flags := []string{"-url", strings.TrimSuffix(b.url, "/fences"), "-client", client}
				out, err := exec.CommandContext(t.Context(), program, append(flags, args...)...).Output()
				return string(out), err
			}
			if said, err := run("probe", "pawl-probe"); err != nil {
				t.Error(said)
			}
			last := func() string {
				said := must(run("read", "report"))(t)
				lines := strings.Split(strings.TrimSpace(said), "\n")
				_, text, _ := strings.Cut(lines[len(lines)-1], " ")
				return text
			}
			story(t, place{
				write: func(lease *pawl.Lease, text string) error {
					if said, err := run("write", "report", strconv.FormatUint(lease.Fence(), 10), text); err != nil {
						return errors.New(strings.TrimSpace(said))
					}
					return nil
				},
				read: last,
			})
			// The client sends again what was not answered, and the store refuses that
			// because it has changed. It was written all the same, once.
			if said, err := run("-lose", "write", "lost", "5", "once"); err != nil {
				t.Error(said)
			}
			if said := must(run("read", "lost"))(t); said != "5 once\n" {
				t.Errorf("it is %q", said)
			}
		})
	}
}

// What docs/fencing.md shows is what was told, and what joins the clients to the store.
func TestTheDocumentShowsWhatIs(t *testing.T) {
	document := must(os.ReadFile(filepath.Join("..", "docs", "fencing.md")))(t)
	blocks := [][]byte{must(os.ReadFile(filepath.Join("testdata", "paused.txt")))(t)}
	for _, file := range []string{"aws.go", "minio.go"} {
		source := must(os.ReadFile(filepath.Join("..", "internal", "testservers", "s3clients", file)))(t)
		_, shown, found := bytes.Cut(source, []byte("// docs: "))
		if !found {
			t.Fatalf("%s does not say what is for the document", file)
		}
		_, shown, _ = bytes.Cut(shown, []byte("\n"))
		blocks = append(blocks, shown)
	}
	for _, block := range blocks {
		if !bytes.Contains(document, block) {
			t.Errorf("docs/fencing.md does not show\n%s", block)
		}
	}
}
