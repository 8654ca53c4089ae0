package mysqllock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// Names are forgotten when nobody has used them for the retention time, and not while
// they are held; what was lost and nobody has read is, too.
func TestOldNamesAreForgotten(t *testing.T) {
	s := mysqltest.Shared(t)
	ctx, db := context.Background(), s.Open(t, s.NewDatabase(t))
	d, err := New(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range 300 {
		c := driver.Claim{
			Name: fmt.Sprintf("%c%d", ' '+rune(i%90), i), Token: driver.NewToken(),
			Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Hour,
		}
		if _, err := d.Acquire(ctx, c); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			continue
		}
		if err := d.Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO pawl_lost (inbox, token, at) VALUES ('dead', x'00', 1)"); err != nil {
		t.Fatal(err)
	}
	count := func(table string) (n int) {
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	own := &tidying{}
	for _, c := range []struct {
		retention time.Duration
		left      int
	}{{time.Hour, 300}, {time.Microsecond, 30}} {
		d.store.Retention = c.retention
		for range 12 {
			own.wanted.Store(true)
			own.now(ctx, d.store)
		}
		if n := count("pawl_names"); n != c.left {
			t.Errorf("with a retention of %v %d names are left, want %d", c.retention, n, c.left)
		}
	}
	if n := count("pawl_lost"); n != 0 {
		t.Errorf("%d rows of what was lost are left", n)
	}
}
