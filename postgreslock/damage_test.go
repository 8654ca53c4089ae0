package postgreslock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A row that was edited does not count as a free name, and affects no other name.
func TestADamagedRowIsNoFreeName(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, other := openDriver(t, url), openDriver(t, url)
	c, fine := mutex("job"), mutex("fine")
	gets(t, d, c)
	gets(t, d, fine)
	for _, value := range []string{`'\x'`, `'\xffff'`} {
		exec(t, conn(t, url), "UPDATE pawl.locks SET version = version + 1, entry = "+value+" WHERE name = 'job'")
		for _, d := range []driver.Driver{d, other} {
			if _, err := d.Acquire(ctx, mutex("job")); !permanent(err) {
				t.Errorf("%s: %v; want a permanent error", value, err)
			}
		}
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c), lease(fine)})
		if err != nil || answers[0] == nil || answers[1] != nil {
			t.Errorf("%s: %v, %v; want only the damaged one refused", value, answers, err)
		}
	}
}

// A list shows all other names when the row of one is damaged.
func TestAListGoesOnBehindADamagedRow(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := openDriver(t, url)
	long := func(name string, queue bool) driver.Claim {
		c := mutex(name)
		c.Queue, c.TTL, c.QueueTTL = queue, time.Hour, time.Hour
		return c
	}
	for _, name := range []string{"job/000", "job/400", "job0", "jo"} {
		gets(t, d, long(name, false))
	}
	for range 20 {
		waits(t, d, long("job/400", true))
	}
	const n = 600 // more than two pages, of which most are like the first
	want := make([]string, n)
	for i := range n {
		want[i] = fmt.Sprintf("job/%03d", i)
	}
	exec(t, conn(t, url), "INSERT INTO pawl.locks SELECT 'job/' || to_char(i, 'FM000'), holders, fence, until, version + i, entry"+
		" FROM pawl.locks, generate_series(1, 599) i WHERE name = 'job/000' AND i <> 400",
		"UPDATE pawl.locks SET entry = '\\x3f' WHERE name IN ('job/005', 'job/006', 'job/599')")
	list := func() (names, damaged []string) {
		for e, err := range d.List(ctx, "job/") {
			if names = append(names, e.Name); err != nil {
				damaged = append(damaged, e.Name)
			} else if len(e.Holders) != 1 || (len(e.Waiters) == 20) != (e.Name == "job/400") {
				t.Errorf("%+v", e)
			}
		}
		return names, damaged
	}
	names, damaged := list()
	if !slices.Equal(names, want) || !slices.Equal(damaged, []string{"job/005", "job/006", "job/599"}) {
		t.Errorf("it lists %q, of which damaged %q", names, damaged)
	}
	if found := diagnose(t, d); !strings.HasSuffix(found, "error damaged entries") {
		t.Errorf("the doctor finds %s", found)
	}
}
