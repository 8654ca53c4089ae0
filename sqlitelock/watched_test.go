package sqlitelock

import (
	"testing"
	"time"
)

func TestAWatchInAnotherDriverIsTold(t *testing.T) {
	for name, prepare := range map[string]func(*lockDriver) *lockDriver{
		"by wake-ups": func(d *lockDriver) *lockDriver { return d },
		"by looking":  deafen,
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			a, b := prepare(open(t, path, nil)), prepare(open(t, path, nil))
			told := make(chan struct{}, 100)
			t.Cleanup(b.Watch("job", func() { told <- struct{}{} }))
			tells := func(what string) {
				t.Helper()
				select {
				case <-told:
				case <-time.After(hangTime):
					t.Fatalf("%s was not told", what)
				}
			}
			tells("the beginning")
			for len(told) > 0 || ask(t, b, "SELECT count(*) FROM entries") == 0 { // until the entry has the watch
				time.Sleep(10 * time.Millisecond)
				for len(told) > 0 {
					<-told
				}
			}
			for range 5 {
				c := mutex("job")
				gets(t, a, c)
				tells("a grant")
				releases(t, a, c)
				tells("a release")
			}
			if !b.Properties().PushesChanges {
				t.Error("PushesChanges is false")
			}
		})
	}
}

// A change of a name without watchers writes no signal, and no driver polls for it.
func TestANameThatNobodyWatchesCostsNothing(t *testing.T) {
	path := file(t)
	a, b := open(t, path, nil), open(t, path, nil)
	stop := b.Watch("job", func() {})
	for ask(t, b, "SELECT count(*) FROM entries") == 0 {
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
