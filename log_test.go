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
)

func TestALeaseLogsItsNameAndFenceAndNotItsToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := background
		locks, net := w.client(&pawl.Options{ID: "client-1"})
		findToken := tokenFinder(net)
		text, all := &bytes.Buffer{}, &bytes.Buffer{}
		logText := func(what any) string {
			text.Reset()
			slog.New(slog.NewTextHandler(text, nil)).Info("m", "x", what)
			_, line, _ := strings.Cut(strings.TrimSpace(text.String()), "msg=m ")
			all.WriteString(line)
			slog.New(slog.NewJSONHandler(all, nil)).Info("m", "x", what)
			return line
		}
		want := func(what any, want string) {
			t.Helper()
			if got := logText(what); got != want {
				t.Errorf("logged as\n%s\nwant\n%s", got, want)
			}
		}

		lease := must(locks.Mutex("job").Lock(ctx))(t)
		prefix := fmt.Sprintf("x.name=job x.fence=%d ", lease.Fence())
		time.Sleep(5 * time.Second)
		want(lease, prefix+"x.left=22s")
		e := must(locks.Inspect(ctx, "job"))(t)
		logText(e)
		logText(pawl.AcquiredEvent{Lease: lease})
		logText(locks)
		_, heldErr := locks.Mutex("job").TryLock(ctx)
		logText(heldErr)
		noError(t, lease.Release(ctx))
		want(lease, prefix+`x.over="pawl: lock released"`)
		want((*pawl.Lease)(nil), `x.over="pawl: lease is nil; allowed: one that was granted"`)

		wantEqual(t, "a token in the log", findToken(all.String()), "")
	})
}

// tokenFinder records the tokens of a client's claims. The function that it returns finds
// a token in a text, and returns it as it is written there, or "".
func tokenFinder(net *network) func(text string) (form string) {
	var tokens []driver.Token
	net.onClaim = func(t driver.Token) { tokens = append(tokens, t) }
	return func(text string) string {
		if len(tokens) == 0 {
			return "no claim was sent"
		}
		for _, t := range tokens {
			goForm := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", [16]byte(t)), "[16]uint8{"), "}")
			for _, form := range []string{strings.Trim(fmt.Sprint(t[:]), "[]"), goForm, string(t[:]), hex.EncodeToString(t[:])} {
				if strings.Contains(text, form) || strings.Contains(strings.ToLower(text), form) {
					return form
				}
			}
		}
		return ""
	}
}

// A token is a secret of its client. No value of this package shows a token if a program
// prints the value, or a copy of it, with any verb.
func TestNoVerbPrintsAToken(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		findToken := tokenFinder(net)
		lease := must(c.Mutex("x").Lock(background))(t)
		both := pawl.All(c.Mutex("y"), c.Mutex("z"))
		leases := must(both.Lock(background))(t)
		ctx, cancel := context.WithCancel(background)
		waits := make(chan error)
		go func() { waits <- errOf(c.Mutex("x").Lock(ctx)) }()
		time.Sleep(time.Second)
		_, heldErr := c.Mutex("x").TryLock(background)
		e := must(c.Inspect(background, "x"))(t)
		mutex, election := c.Mutex("x"), c.Election("e")
		short := []any{c, lease, *lease, leases, *leases, both, *both, mutex, *mutex, election, c.Once("o"), c.Semaphore("s", 1), c.RWMutex("r")}
		for i, x := range append(short, lease.Context(), heldErr, &heldErr, e) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
				text := fmt.Sprintf(verb, x)
				if form := findToken(text); form != "" {
					t.Errorf("%T prints a token with %s: %q", x, verb, form)
				}
				if len(text) > 200 && verb != "%p" && i < len(short) { // %p asks no Formatter
					t.Errorf("%T prints %d bytes with %s", x, len(text), verb)
				}
			}
		}
		cancel()
		<-waits
		noError(t, errors.Join(lease.Release(background), leases.Release(background)))
	})
}
