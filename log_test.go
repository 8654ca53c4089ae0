package pawl_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

func TestALeaseLogsWellAndWithoutItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		d := &tokens{Driver: memlock.New(nil)}
		locks, err := pawl.New(d, &pawl.Options{ID: "client-1"})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(ctx)
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
		if err != nil {
			t.Fatal(err)
		}
		begins := fmt.Sprintf("x.name=job x.fence=%d ", lease.Fence())
		time.Sleep(5 * time.Second)
		want(lease, begins+"x.left=22s")
		e, err := locks.Inspect(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		logs(e)
		logs(pawl.AcquiredEvent{Lease: lease})
		logs(locks)
		_, held := locks.Mutex("job").TryLock(ctx)
		logs(held)
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}
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
