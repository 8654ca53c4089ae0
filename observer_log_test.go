package pawl_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestWhatHappensIsLogged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		a, net := w.client(&pawl.Options{Observer: pawl.LogObserver(log), TTL: 9 * time.Second})
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		_, _ = a.Mutex("x").TryLock(background)
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, _ = a.Mutex("x").Lock(ctx)
		noError(t, lease.Release(background))
		lost := must(t)(a.Mutex("x").Lock(background))
		noError(t, b.Break(background, "x", lost.Fence(), 0))
		<-lost.Done()
		net.down()
		_, _ = a.Mutex("y").TryLock(background)
		synctest.Wait()
		for _, want := range []string{
			`level=DEBUG msg="lock acquired" name=x fence=`, `level=INFO msg="lock refused" name=x`, `level=DEBUG msg="lock queued" name=x position=1`,
			`level=WARN msg="lock refused" name=x waited=1s`, `level=DEBUG msg="lock released" name=x fence=`, `level=ERROR msg="lock lost" name=x fence=`,
			`level=WARN msg="lock backend failed" op=acquire name=y claims=1`, `level=WARN msg="lock refused" name=y`,
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the log has no %s:\n%s", want, text.String())
			}
		}
	})
}
