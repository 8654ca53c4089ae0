package sqlitelock

import (
	"testing"
	"time"
)

// A change of a name without watchers writes no signal, and no driver polls for it.
func TestANameThatNobodyWatchesCostsNothing(t *testing.T) {
	path := file(t)
	a, b := open(t, path, nil), open(t, path, nil)
	stop := b.Watch("job", func() {})
	for rows(t, b) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if !b.table.claims.Any(time.Now()) {
		t.Error("who watches does not look")
	}
	cycle(t, a, "other")
	if n := ask(t, a, "SELECT count(*) FROM signals"); n != 0 {
		t.Errorf("%d signals of what nobody watches", n)
	}
	cycle(t, a, "job")
	if n := ask(t, a, "SELECT count(*) FROM signals"); n != 2 {
		t.Errorf("%d signals of a cycle; want 2", n)
	}
	stop()
	for began := time.Now(); b.table.claims.Any(time.Now()); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > hangTime {
			t.Fatal("it looks for nobody")
		}
	}
}
