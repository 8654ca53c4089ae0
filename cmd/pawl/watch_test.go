package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// A line of JSON has more fields than the line for people, so watch prints more of them.
func TestWatchJSONPrintsEachState(t *testing.T) {
	holder := pawl.Holder{Owner: pawl.Owner{Host: "web-1", PID: 7}, Fence: 17, Permits: driver.Exclusive, Limit: driver.Exclusive, TTL: time.Minute, ExpiresIn: time.Second}
	first := pawl.Waiter{Owner: pawl.Owner{Host: "web-1", PID: 7}, Permits: 1, Limit: 2, ExpiresIn: time.Second}
	second := pawl.Waiter{Owner: pawl.Owner{Host: "web-2", PID: 7}, Permits: 1, Limit: 2, ExpiresIn: time.Second}
	later := holder
	later.ExpiresIn = time.Millisecond
	states := []struct {
		entry pawl.Entry
		isNew bool
	}{
		{pawl.Entry{Name: "x", Holders: []pawl.Holder{holder}, Waiters: []pawl.Waiter{first}}, true},
		{pawl.Entry{Name: "x", Holders: []pawl.Holder{later}, Waiters: []pawl.Waiter{first}}, false},
		{pawl.Entry{Name: "x", Holders: []pawl.Holder{later}, Waiters: []pawl.Waiter{second}}, true},
		{pawl.Entry{Name: "x", Fence: 17, ClosedFor: time.Minute}, true},
		{pawl.Entry{Name: "x", Fence: 17, ClosedFor: time.Second}, false},
		{pawl.Entry{Name: "x", Fence: 17}, true},
		{pawl.Entry{Name: "x", Fence: 18}, true},
	}
	var out bytes.Buffer
	w := &watchCommand{v: &output{out: &out}, asJSON: true}
	for i, s := range states {
		out.Reset()
		noError(t, w.printIfChanged(s.entry))
		if isNew := out.Len() > 0; isNew != s.isNew {
			t.Errorf("state %d is printed: %v, want %v", i, isNew, s.isNew)
		}
	}
}

// An unreadableDriver is a backend whose entries cannot be read while down is set.
type unreadableDriver struct {
	driver.Driver
	down atomic.Bool
}

func (u *unreadableDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if u.down.Load() {
		return driver.Entry{}, &driver.Error{Backend: "redis host:6379", Op: "read", Err: errors.New("connection refused")}
	}
	return u.Driver.Inspect(ctx, name)
}

func TestWatchSaysWhenTheDatabaseAnswersAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		backend := &unreadableDriver{Driver: engine.Full(memlock.New(nil))}
		c := mustGet(pawl.New(backend, nil))(t)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var out, messages bytes.Buffer
		w := &watchCommand{v: &output{out: &out, err: &messages}}
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx, c, "x") }()
		for _, down := range []bool{false, true, false, true, false} {
			backend.down.Store(down)
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		const again = "pawl: the database answers again\n"
		if strings.Count(messages.String(), again) != 2 || !strings.HasSuffix(messages.String(), again) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("its messages are %q, its output %q", messages.String(), out.String())
		}
	})
}
