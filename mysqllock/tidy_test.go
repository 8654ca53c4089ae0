package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// asDriver converts the driver of New or Open to its own type, which has all its methods.
var asDriver = servertest.As[*lockDriver]

// driverOver makes a driver that is closed when the test ends.
func driverOver(t *testing.T, db *sql.DB) *lockDriver {
	t.Helper()
	d, err := asDriver(New(db, nil))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// newTidier returns a store that tidies only when a test calls tidyPage.
func newTidier(t *testing.T, db *sql.DB) *store {
	t.Helper()
	s := driverOver(t, db).store
	s.Retention = time.Microsecond
	return s
}

// Tidying deletes names that were unused for the retention time, except held names. It
// also deletes unread rows of lost leases.
func TestOldNamesAreForgotten(t *testing.T) {
	t.Parallel()
	s := mysqltest.Shared(t)
	ctx, db := context.Background(), s.Open(t, s.NewDatabase(t))
	d := driverOver(t, db)
	for i := range 300 {
		c := servertest.Mutex(fmt.Sprintf("%c%d", ' '+rune(i%90), i))
		c.TTL = time.Hour
		servertest.Gets(t, d, c)
		if i%10 != 0 {
			servertest.Releases(t, d, c)
		}
	}
	must(db.ExecContext(ctx, "INSERT INTO pawl_lost (inbox, token, at) VALUES ('dead', x'00', 1)"))(t)
	count := func(table string) (n int) {
		noError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n))
		return n
	}
	tidier := newTidier(t, db)
	for _, c := range []struct {
		retention time.Duration
		left      int
	}{{time.Hour, 300}, {time.Microsecond, 30}} {
		tidier.Retention = c.retention
		for range 12 {
			tidier.tidyPage(ctx)
		}
		if n := count("pawl_names"); n != c.left {
			t.Errorf("with a retention of %v %d names are left, want %d", c.retention, n, c.left)
		}
	}
	if n := count("pawl_lost"); n != 0 {
		t.Errorf("%d rows of lost leases are left, want none", n)
	}
}

// Many short processes check a few names each. Together they check all names, even if the
// names have a common prefix, and names before them are in use.
func TestManyShortProcessesTidyAllNames(t *testing.T) {
	s := mysqltest.Shared(t)
	ctx, db := context.Background(), s.Open(t, s.NewDatabase(t))
	d, held := driverOver(t, db), servertest.Mutex("busy")
	held.TTL = time.Hour
	servertest.Gets(t, d, held)
	servertest.Cycle(t, d, "old")
	for _, statement := range []string{"INSERT INTO pawl_names SELECT CONCAT('busy-', seq), seq, entry, fence, holders, until FROM pawl_names, seq_1_to_200 WHERE name = 'busy'",
		"INSERT INTO pawl_names SELECT CONCAT('job:', MD5(seq)), seq, entry, fence, holders, until FROM pawl_names, seq_1_to_400 WHERE name = 'old'",
		"INSERT INTO pawl_names SELECT CONCAT('job:', MD5(seq)), seq, entry, fence, holders, until FROM pawl_names, seq_401_to_800 WHERE name = 'busy'",
	} {
		must(db.ExecContext(ctx, statement))(t)
	}
	tidier := newTidier(t, db)
	for i := range 1000 {
		tidier.cursor = "" // another process
		tidier.tidyPage(ctx)
		var left int
		noError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pawl_names").Scan(&left))
		if left == 601 {
			t.Logf("after %d processes", i+1)
			return
		}
	}
	t.Error("after 1000 processes some old names are left")
}
