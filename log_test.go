package pawl_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

func TestALeaseLogsWellAndWithoutItsToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		d := &tokens{Driver: engine.Full(memlock.New(nil))}
		locks, err := pawl.New(d, &pawl.Options{ID: "client-1"})
		noError(t, err)
		defer locks.Close()
		text, all := &bytes.Buffer{}, &bytes.Buffer{}
		logs := func(what any) string {
			text.Reset()
			slog.New(slog.NewTextHandler(text, nil)).Info("m", "x", what)
			_, line, _ := strings.Cut(strings.TrimSpace(text.String()), "msg=m ")
			all.WriteString(line)
			slog.New(slog.NewJSONHandler(all, nil)).Info("m", "x", what)
			return line
		}
		want := func(what any, want string) {
			t.Helper()
			if got := logs(what); got != want {
				t.Errorf("logged as\n%s\nwant\n%s", got, want)
			}
		}

		lease, err := locks.Mutex("job").Lock(ctx)
		noError(t, err)
		begins := fmt.Sprintf("x.name=job x.fence=%d ", lease.Fence())
		time.Sleep(5 * time.Second)
		want(lease, begins+"x.left=22s")
		e, err := locks.Inspect(ctx, "job")
		noError(t, err)
		logs(e)
		logs(pawl.AcquiredEvent{Lease: lease})
		logs(locks)
		_, held := locks.Mutex("job").TryLock(ctx)
		logs(held)
		noError(t, lease.Release(ctx))
		want(lease, begins+`x.over="pawl: lock released"`)
		want((*pawl.Lease)(nil), `x.over="pawl: lease is nil; allowed: one that was granted"`)

		for _, token := range d.seen {
			for _, secret := range []string{hex.EncodeToString(token[:]), string(token[:]), fmt.Sprint(token[:])} {
				if strings.Contains(all.String(), secret) {
					t.Errorf("a token was logged: %s", all)
				}
			}
		}
		if len(d.seen) == 0 {
			t.Error("no token was seen")
		}
	})
}

// Tokens are secrets of the client: printing a client, a lock or a lease must not show
// them.
func TestNothingThatIsPrintedShowsAToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		var tokens []driver.Token
		f.claimed = func(t driver.Token) { tokens = append(tokens, t) }
		m := c.Mutex("x")
		lease := must(t)(m.Lock(background))
		ctx, cancel := context.WithCancel(background)
		waits := make(chan error)
		go func() { _, err := c.Mutex("x").Lock(ctx); waits <- err }()
		time.Sleep(time.Second)
		_, held := c.Mutex("x").TryLock(background)
		e, _ := c.Inspect(background, "x")
		var printed strings.Builder
		fmt.Fprintln(&printed, lease.Context())
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&printed, strings.Repeat(verb+"\n", 7), c, m, lease, *m, &held, held, e)
		}
		for _, token := range tokens {
			for _, form := range []string{string(token[:]), fmt.Sprintf("%x", token[:]), strings.Trim(fmt.Sprintf("%d", token[:]), "[]")} {
				if strings.Contains(printed.String(), form) {
					t.Errorf("a token is shown as %q", form)
				}
			}
		}
		if len(tokens) != 2 {
			t.Errorf("%d claims were sent", len(tokens))
		}
		cancel()
		<-waits
	})
}

// Nothing that a program prints, with any verb, or as a copy, has a token.
func TestNothingPrintsATokenWhateverTheVerb(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(nil)
		var tokens []driver.Token
		net.claimed = func(x driver.Token) { tokens = append(tokens, x) }
		lease := must(t)(c.Mutex("x").Lock(background))
		both := pawl.All(c.Mutex("y"), c.Mutex("z"))
		leases, err := both.Lock(background)
		noError(t, err)
		mutex, election := c.Mutex("x"), c.Election("e")
		for _, x := range []any{c, lease, *lease, leases, *leases, both, *both, mutex, *mutex, election, c.Once("o"), c.Semaphore("s", 1), c.RWMutex("r")} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
				said := fmt.Sprintf(verb, x)
				for _, token := range tokens {
					plain := strings.Trim(fmt.Sprint([16]byte(token)), "[]")
					goForm := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", [16]byte(token)), "[16]uint8{"), "}")
					for _, form := range []string{plain, goForm, string(token[:]), hex.EncodeToString(token[:])} {
						if strings.Contains(strings.ToLower(said), form) {
							t.Errorf("%T prints a token with %s", x, verb)
						}
					}
				}
				if len(said) > 200 && verb != "%p" { // which asks no Formatter
					t.Errorf("%T prints %d bytes with %s", x, len(said), verb)
				}
			}
		}
		noError(t, errors.Join(lease.Release(background), leases.Release(background)))
	})
}
