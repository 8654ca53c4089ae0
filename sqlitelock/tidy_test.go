package sqlitelock

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/sqlswap"
)

func TestNamesAreForgottenAfterTheRetentionTime(t *testing.T) {
	c := clock()
	path := newPath(t)
	options := &Options{now: c.Now, Retention: time.Hour}
	d := open(t, path, options)
	d.table.tidyEvery = 1 << 30
	const used = 3 * sqlswap.TidyRows
	var last uint64
	for i := range used {
		last = cycle(t, d, fmt.Sprintf("job %d", i)).Fence
	}
	held := mutex("held")
	held.TTL = 24 * time.Hour
	gets(t, d, held)

	// Each driver tidies after its only cycle; together they check all names.
	tidy := func(n int) {
		for range n {
			d := open(t, path, options)
			d.table.tidyEvery = 1
			cycle(t, d, "often")
			noError(t, d.Close())
		}
	}
	c.Advance(59 * time.Minute)
	tidy(10)
	if n := countNames(t, d); n != used+2 {
		t.Fatalf("%d names are left before the retention time, want %d", n, used+2)
	}
	c.Advance(4 * time.Minute) // the pause of tidying is also over
	tidy(10)
	if n := countNames(t, d); n != 2 {
		t.Fatalf("%d names are left, want 2", n)
	}
	if e, err := d.Inspect(ctx, "held"); err != nil || len(e.Holders) != 1 {
		t.Fatalf("the held name: %+v, %v; want its holder", e, err)
	}
	wantHigherFence(t, last, gets(t, d, mutex("job 191")).Fence)
}

func TestADamagedRowDoesNotStopTheTidying(t *testing.T) {
	c := clock()
	path := newPath(t)
	d := open(t, path, &Options{now: c.Now})
	d.table.tidyEvery = 1
	for _, name := range []string{"a", "b", "c"} {
		cycle(t, d, name)
	}
	execRaw(t, path, "UPDATE entries SET entry = x'00' WHERE name = CAST('b' AS BLOB)")
	c.Advance(48 * time.Hour)
	gets(t, d, mutex("x"))
	if n := countNames(t, d); n != 2 { // x, and b, which an operator has to repair
		t.Fatalf("%d names are left, want 2", n)
	}
}
