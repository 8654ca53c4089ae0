package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/fence"
)

var update = flag.Bool("update", false, "rewrite testdata/errors.txt with the texts of the errors")

// TestErrorsAreAsInTheGoldenFile makes each kind of error that the root returns, and
// compares its text with testdata/errors.txt, so that a diff shows each change of a text.
func TestErrorsAreAsInTheGoldenFile(t *testing.T) {
	var text bytes.Buffer
	inWorld(t, func(t *testing.T, w *world) {
		record := func(what string, err error) {
			t.Helper()
			if err == nil {
				t.Errorf("%s: no error", what)
				return
			}
			fmt.Fprintf(&text, "%s\n    %s\n", what, stableText(err.Error()))
		}
		recordInvalid(t, w, record)
		recordHeld(t, w, record)
		recordLost(t, w, record)
		recordUnavailable(t, w, record)
		recordClosed(t, w, record)
		recordStale(t, record)
	})
	const file = "testdata/errors.txt"
	if *update {
		noError(t, os.WriteFile(file, text.Bytes(), 0o600))
	}
	if want, err := os.ReadFile(file); err != nil || text.String() != string(want) {
		t.Errorf("the errors differ from %s: run go test . -run Golden -update, and check the diff\n%s", file, text.String())
	}
}

// stableText returns a text without this machine's host, this process and fences.
func stableText(s string) string {
	host, _ := os.Hostname()
	s = strings.ReplaceAll(s, fmt.Sprintf("%s:%d", host, os.Getpid()), "HOST:PID")
	return regexp.MustCompile(`fence \d+`).ReplaceAllString(s, "fence N")
}

// recordInvalid records the errors of input that is refused before anything is sent.
func recordInvalid(t *testing.T, w *world, record func(string, error)) {
	t.Helper()
	for _, o := range []struct {
		what string
		o    pawl.Options
	}{
		{"TTL of 1 ms", pawl.Options{TTL: time.Millisecond}},
		{"QueueTTL of 31 days", pawl.Options{QueueTTL: 31 * 24 * time.Hour}},
		{"RequestTimeout below 0", pawl.Options{RequestTimeout: -1}},
		{"HandoffWindow of 2 s", pawl.Options{HandoffWindow: 2 * time.Second}},
		{"a label without a key", pawl.Options{Labels: map[string]string{"": "x"}}},
		{"an ID of 257 bytes", pawl.Options{ID: strings.Repeat("x", 257)}},
	} {
		_, err := pawl.New(w.memory.Driver(), &o.o)
		record(o.what, err)
	}
	_, err := pawl.New(nil, nil)
	record("no driver", err)
	for _, url := range []string{"", "nowhere", "etcd://host", "redis://host", "mem:?x=1"} {
		_, err := pawl.Open(background, url, nil)
		record(fmt.Sprintf("the URL %q", url), err)
	}
	c, net := w.client(nil)
	for _, l := range []struct {
		what string
		m    *pawl.Mutex
	}{
		{"no name", c.Mutex("")},
		{"a long name", c.Mutex(strings.Repeat("x", 256))},
		{"a minimum hold above the maximum", c.Mutex("x", pawl.WithMinHold(time.Hour), pawl.WithMaxHold(time.Minute))},
		{"a margin of the whole TTL", c.Mutex("x", pawl.WithGrace(30*time.Second))},
		{"a lock-delay below 0", c.Mutex("x", pawl.WithLockDelay(-1))},
		{"a control character", c.Mutex("a\nb")},
		{"a TTL of 0", c.Mutex("x", pawl.WithTTL(0))},
		{"a TTL of 31 days", c.Mutex("x", pawl.WithTTL(31*24*time.Hour))},
		{"a minimum hold below 0", c.Mutex("x", pawl.WithMinHold(-1))},
		{"a maximum hold below 0", c.Mutex("x", pawl.WithMaxHold(-1))},
		{"a margin above the maximum hold", c.Mutex("x", pawl.WithGrace(15*time.Second), pawl.WithMaxHold(10*time.Second))},
		{"a long label", c.Mutex("x", pawl.WithLabel("k", strings.Repeat("v", 257)))},
	} {
		for _, lock := range []func(context.Context) (*pawl.Lease, error){l.m.TryLock, l.m.Lock} {
			_, err = lock(background)
			invalid, ok := errors.AsType[*pawl.InvalidError](err)
			if !errors.Is(err, pawl.ErrInvalid) || !ok || invalid.Allowed == "" {
				t.Errorf("with %s the lock returns %v, want an InvalidError that says what is allowed", l.what, err)
			}
		}
		record(l.what, err)
	}
	_, err = c.RWMutex("a\xff").RLock(background)
	record("no UTF-8", err)
	for _, p := range []struct{ wanted, permits int }{{5, 3}, {1, 0}, {0, 4}, {1, 1<<31 - 1}} {
		_, err = c.Semaphore("x", p.permits).TryAcquire(background, p.wanted)
		record(fmt.Sprintf("%d permits of %d", p.wanted, p.permits), err)
	}
	_, err = c.Mutex("x").Lock(nil) //nolint:staticcheck // Lock must refuse it
	record("no ctx", err)
	record("no function", c.Mutex("x").Do(background, nil))
	record("a condition for an Election", c.Election("x", pawl.WithValueBelow([]byte("1"))).Run(background, nil))
	_, err = c.Once("x", pawl.WithValue([]byte("1"))).Do(background, "1", nil)
	record("a value for a Once", err)
	_, err = c.Attach(background, "pawl1_nonsense")
	record("what is no handle", err)
	_, err = c.Attach(background, "[handle]")
	record("what a handle prints", err)
	record("a lease that is nil", (*pawl.Lease)(nil).Release(background))
	wantEqual(t, "requests", net.count("acquire")+net.count("renew"), 0)
	wantNothingLeft(t, c)
	atTheLimits := c.Mutex("x", pawl.WithMinHold(time.Minute), pawl.WithMaxHold(time.Minute), pawl.WithGrace(15*time.Second))
	noError(t, must(atTheLimits.Lock(background))(t).Release(background))
}

func recordHeld(t *testing.T, w *world, record func(string, error)) {
	t.Helper()
	c, other := w.twoClients()
	held := must(c.Mutex("held").Lock(background))(t)
	_, err := other.Mutex("held").TryLock(background)
	record("held by another", err)
	_, err = c.Mutex("held").TryLock(background)
	record("held by this client", err)
	ctx := timeoutCtx(t, time.Second)
	_, err = other.Mutex("held").Lock(ctx)
	record("a wait that a deadline ended", err)
	canceledCtx, cancel := context.WithCancel(background)
	cancel()
	_, err = other.Mutex("held").Lock(canceledCtx)
	record("a wait that was cancelled", err)
	for _, o := range []*pawl.BreakOptions{nil, noDelay} { // the caller passed no token, so the error names the fence
		err := other.Break(background, "held", 1, o)
		isError(t, err, pawl.ErrNoSuchLease)
		record("a break of another fence", err)
	}
	noError(t, other.Break(background, "held", held.Fence(), &pawl.BreakOptions{Delay: time.Minute}))
	_, err = other.Mutex("held").TryLock(background)
	record("closed by a break", err)
	noError(t, must(c.Mutex("kept", pawl.WithValue([]byte("9"))).Lock(background))(t).Release(background))
	_, err = c.Mutex("kept", pawl.WithValueBelow([]byte("8"))).TryLock(background)
	record("a value that is not smaller", err)
	<-held.Done()
	record("a lease that was broken", held.Err())
}

func recordLost(t *testing.T, w *world, record func(string, error)) {
	t.Helper()
	c, net, other := w.twoWithNetwork()
	l := must(c.Mutex("forced").Lock(background))(t)
	must(other.Mutex("forced").ForceLock(background))(t)
	<-l.Done()
	record("a lease that was taken by force", l.Err())
	l = must(c.Mutex("long", pawl.WithMaxHold(time.Minute)).Lock(background))(t)
	<-l.Done()
	record("a lease that was held for its maximum", l.Err())
	l = must(c.Mutex("gone").Lock(background))(t)
	up := net.down()
	<-l.Done()
	record("a lease that could not be renewed", l.Err())
	up()
	synctest.Wait()
	l = must(c.Mutex("released").Lock(background))(t)
	noError(t, l.Release(background))
	record("a lease that was released", l.Err())
	stuck := func(context.Context) error { return errors.New("no progress for a minute") }
	l = must(c.Mutex("stuck", pawl.WithHealth(stuck)).Lock(background))(t)
	<-l.Done()
	record("a lease whose work is not healthy", l.Err())
	l = must(c.Mutex("handed on").Lock(background))(t)
	handle := must(l.Detach(background))(t)
	record("a lease that was detached", l.Err())
	noError(t, must(other.Attach(background, handle))(t).Release(background))
	_, err := other.Attach(background, handle)
	record("a handle of a lease that is over", err)
}

func recordStale(t *testing.T, record func(string, error)) {
	t.Helper()
	var m fence.Memory
	noError(t, m.Check("report", 18))
	record("a fence below one that was accepted", m.Check("report", 17))
	record("no fence", m.Check("report", 0))
	record("an object that is not there", fence.ErrNoObject)
	record("an object that another has written", fence.ErrObjectChanged)
}

func recordUnavailable(t *testing.T, w *world, record func(string, error)) {
	t.Helper()
	c, net := w.client(nil)
	l := must(c.Mutex("y").Lock(background))(t)
	up := net.down()
	_, err := c.Mutex("x").TryLock(background)
	record("a try without a backend", err)
	_, err = c.Mutex("x").Lock(background)
	record("a wait without a backend", err)
	ctx := timeoutCtx(t, time.Second)
	_, err = c.Mutex("x").Lock(ctx)
	record("a wait without a backend that a deadline ended", err)
	record("a release without a backend", l.Release(background))
	up()
	for _, err := range c.List(background, "") {
		if err != nil {
			record("a list", err)
		}
	}
}

func recordClosed(t *testing.T, w *world, record func(string, error)) {
	t.Helper()
	c, net := w.client(nil)
	l := must(c.Mutex("z").Lock(background))(t)
	ctx := timeoutCtx(t, time.Second)
	up := net.down()
	record("a shutdown while a lease is held, without a backend", c.Shutdown(ctx))
	up()
	record("a lease of a closed client", l.Err())
	_, err := c.Mutex("z").TryLock(background)
	record("a lock of a closed client", err)
	other, net := w.client(nil)
	must(other.Mutex("z2").Lock(background))(t)
	net.down()
	record("a close without a backend", other.Close())
	record("a close that leaves two", &pawl.CloseError{Unreleased: 2, Err: errors.New("pawl: no answer")})
	// The prefix appears once, however many errors are wrapped in one another.
	down := &driver.Error{Backend: "quorum", Op: "renew", Err: &driver.Error{Backend: "redis", Op: "renew", Err: errNet}}
	record("a lease that a quorum lost", &pawl.LostError{Name: "x", Fence: 17, Reason: pawl.ReasonUnreachable, Err: down})
}

func TestAnUnansweredRequestNamesTheBackend(t *testing.T) {
	for location, backend := range map[string]string{"memory host:6379": "memory host:6379", "": "memory"} {
		inWorld(t, func(t *testing.T, w *world) {
			net := w.network()
			net.properties = func(p *driver.Properties) { p.Location = location }
			net.setStuck(func(op string, _ int) bool { return op == "acquire" })
			_, err := w.clientOf(net, nil).Mutex("x").TryLock(background)
			if want := `pawl: ` + backend + `: acquire "x": no answer in time`; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("TryLock: %v; want %s", err, want)
			}
		})
	}
}
