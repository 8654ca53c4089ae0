package postgreslock_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// AcquireAll writes all rows in one transaction: xmin is the last one that wrote a row.
func TestSeveralNamesAreOneTransaction(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	for _, exist := range []bool{false, true} {
		var claims []driver.Claim
		for i := range 5 {
			claims = append(claims, mutex(fmt.Sprint("job-", i)))
		}
		grants, err := d.AcquireAll(ctx, claims)
		if err != nil || len(grants) != 5 {
			t.Fatalf("AcquireAll = %v, %v; want 5 grants", grants, err)
		}
		var rows, transactions int
		row := conn(t, url).QueryRow(ctx, "SELECT count(*), count(DISTINCT xmin::text) FROM pawl.locks WHERE holders <> ''")
		noError(t, row.Scan(&rows, &transactions))
		if rows != 5 || transactions != 1 {
			t.Errorf("%d rows in %d transactions (rows existed before: %t), want 5 in one", rows, transactions, exist)
		}
		for _, c := range claims {
			releases(t, d, c)
		}
	}
}
