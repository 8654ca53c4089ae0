package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// A goneDriver is a backend whose server is gone after the grant.
type goneDriver struct{ driver.Driver }

func (goneDriver) Renew(ctx context.Context, _ []driver.LeaseRef) ([]error, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (goneDriver) Release(ctx context.Context, _ driver.LeaseRef) error {
	<-ctx.Done()
	return ctx.Err()
}

// After SIGTERM pawl ends within three seconds of the end of its command, whatever the
// server does. A second signal ends it at once.
func TestPawlEndsSoonWhenTheServerIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		backend  driver.Driver
		signaled bool            // a signal has ended the command
		signals  []time.Duration // after the end of the command
		within   time.Duration
		warns    bool
	}{
		"Signal":            {backend: goneDriver{engine.Full(memlock.New(nil))}, signaled: true, within: signalTimeout, warns: true},
		"SecondSignal":      {backend: goneDriver{engine.Full(memlock.New(nil))}, signaled: true, signals: []time.Duration{time.Second}, within: time.Second, warns: true},
		"SignalSentTwice":   {backend: goneDriver{engine.Full(memlock.New(nil))}, signaled: true, signals: []time.Duration{sameSignalWindow / 2}, within: signalTimeout, warns: true},
		"LateSignal":        {backend: goneDriver{engine.Full(memlock.New(nil))}, signals: []time.Duration{time.Second}, within: time.Second + signalTimeout, warns: true},
		"TwoLateSignals":    {backend: goneDriver{engine.Full(memlock.New(nil))}, signals: []time.Duration{time.Second, 2 * time.Second}, within: 2 * time.Second, warns: true},
		"NoSignal":          {backend: goneDriver{engine.Full(memlock.New(nil))}, within: 5*time.Second + releaseTimeout, warns: true},
		"AnswerAfterSignal": {backend: memlock.New(nil), signaled: true},
		"Answer":            {backend: memlock.New(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				client := mustGet(pawl.New(c.backend, nil))(t)
				lease := mustGet(client.Mutex("x").Lock(t.Context()))(t)
				var messages bytes.Buffer
				j := &job{v: &output{err: &messages}, name: "x", started: true, signals: make(chan os.Signal, 2)}
				if c.signaled {
					j.startEndTimeout()
				}
				began := time.Now()
				for _, after := range c.signals {
					time.AfterFunc(after, func() { j.signals <- syscall.SIGTERM })
				}
				j.releaseAndClose(client, lease, releaseTimeout)
				if took := time.Since(began); took > c.within || name != "NoSignal" && took != c.within {
					t.Errorf("it took %v, want %v", took, c.within)
				}
				if warns := strings.Contains(messages.String(), "stay"); warns != c.warns {
					t.Errorf("it printed %q", messages.String())
				}
				if e, err := client.Inspect(t.Context(), "x"); !c.warns && err == nil && len(e.Holders) > 0 {
					t.Errorf("it is left held: %+v", e)
				}
				time.Sleep(time.Hour) // a release that is still repeated ends with the lease
			})
		})
	}
}
