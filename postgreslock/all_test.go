package postgreslock_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// A row shows which transaction wrote it last.
func TestSeveralNamesAreOneTransaction(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := start(t, url)
	for _, known := range []bool{false, true} {
		var claims []driver.Claim
		for i := range 5 {
			claims = append(claims, mutex(fmt.Sprint("job-", i)))
		}
		grants, err := d.AcquireAll(ctx, claims)
		if err != nil || len(grants) != 5 {
			t.Fatalf("AcquireAll = %v, %v", grants, err)
		}
		var rows, transactions int
		row := conn(t, url).QueryRow(ctx, "SELECT count(*), count(DISTINCT xmin::text) FROM pawl.locks WHERE holders <> ''")
		if err := row.Scan(&rows, &transactions); err != nil {
			t.Fatal(err)
		}
		if rows != 5 || transactions != 1 {
			t.Errorf("%d rows in %d transactions (known before: %t), want 5 in one", rows, transactions, known)
		}
		for _, c := range claims {
			releases(t, d, c)
		}
	}
}
