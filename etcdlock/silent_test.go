package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// wantUnanswered requires an error that wraps DeadlineExceeded and contains the text.
func wantUnanswered(t *testing.T, err error, text, op string) {
	t.Helper()
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, driver.ErrUnavailable) || e.Permanent ||
		string(e.Op) != op || e.Hint == "" || !strings.Contains(err.Error(), text) {
		t.Errorf("%v; want it to contain %q", err, text)
	}
}

func TestAnUnansweredStepNamesTheServers(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	addr := c.Members[0].Addr
	short := func() context.Context { return servertest.Within(t, time.Second) }
	p := startProxy(t, c)
	slow := openDriver(t, "etcd://"+p.Addr)
	gets(t, slow, mutex("first"))
	release := p.Hold()
	acquireUntil := func(d driver.Driver, text string) (err error) {
		for began := time.Now(); time.Since(began) < hangTime; { // until the client has noticed
			if _, err = d.Acquire(short(), mutex("job")); err == nil || strings.Contains(err.Error(), text) {
				break
			}
		}
		return err
	}
	wantUnanswered(t, acquireUntil(slow, "no answer from"), "no answer from "+p.Addr, "acquire")
	release()

	d := openDriver(t, c.URL())
	gets(t, d, mutex("second"))
	c.Members[0].Kill()
	wantUnanswered(t, acquireUntil(d, "no server can be reached"), "no server can be reached at "+addr, "acquire")
	_, err := d.Inspect(short(), "job")
	wantUnanswered(t, err, "no server can be reached at "+addr, "read")

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := d.Inspect(canceled, "job"); err != context.Canceled {
		t.Errorf("%v; want Canceled, because the caller gave up", err)
	}
}

func TestAnUnansweredOpeningNamesTheServers(t *testing.T) {
	t.Parallel()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	<-short.Done()
	_, err := etcdlock.Open(short, "etcd://joe:hunter2@192.0.2.1,192.0.2.2:1")
	wantUnanswered(t, err, "192.0.2.1:2379, 192.0.2.2:1", "open")
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
