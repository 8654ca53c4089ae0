package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// A stalledWriter writes nothing until resume is closed.
type stalledWriter struct {
	bytes.Buffer
	resume chan struct{}
}

func (s *stalledWriter) Write(p []byte) (int, error) {
	<-s.resume
	return s.Buffer.Write(p)
}

func TestLinesComeOutInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &stalledWriter{resume: make(chan struct{})}
		w := newAsyncWriter(s)
		t.Cleanup(func() { close(w.wake) })
		v := &output{err: w}
		want := ""
		for i := range maxAsyncLines + 1 { // one is being written
			v.say("line %d", i)
			want += fmt.Sprintf("pawl: line %d\n", i)
			synctest.Wait()
		}
		close(s.resume)
		v.flush(endFlushTimeout)
		if got := s.String(); got != want {
			t.Errorf("it wrote %q, want %q", got, want)
		}
	})
}

func TestDroppedLinesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &stalledWriter{resume: make(chan struct{})}
		w := newAsyncWriter(s)
		t.Cleanup(func() { close(w.wake) })
		v := &output{err: w}
		v.say("first")
		synctest.Wait()
		for i := range maxAsyncLines + 7 {
			v.say("line %d", i)
		}
		began := time.Now()
		v.flush(endFlushTimeout)
		if took := time.Since(began); took != endFlushTimeout {
			t.Errorf("flush returned after %v, want %v", took, endFlushTimeout)
		}
		close(s.resume)
		v.flush(endFlushTimeout)
		v.say("later")
		v.flush(endFlushTimeout)
		last := fmt.Sprintf("pawl: line %d\npawl: %s\npawl: later\n", maxAsyncLines-1, notPrinted(7))
		if got := s.String(); !strings.HasSuffix(got, last) || strings.Count(got, "\n") != maxAsyncLines+3 {
			t.Errorf("it wrote %d lines, want %d; the last are %q", strings.Count(got, "\n"), maxAsyncLines+3, got[max(0, len(got)-len(last)):])
		}
	})
}

// A failingDriver is a backend that fails while down is set.
type failingDriver struct {
	driver.Driver
	down atomic.Bool
}

func (f *failingDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if f.down.Load() {
		return driver.Grant{}, &driver.Error{Backend: "redis host:6379", Op: "acquire", Err: errors.New("connection refused")}
	}
	return f.Driver.Acquire(ctx, c)
}

// Elect warns that the backend fails, and keeps campaigning, although no process reads
// the warning.
func TestElectLeadsAlthoughItsMessagesAreNotRead(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			s := &stalledWriter{resume: make(chan struct{})}
			w := newAsyncWriter(s)
			defer close(w.wake)
			defer close(s.resume)
			backend := &failingDriver{Driver: engine.Full(memlock.New(nil))}
			backend.down.Store(true)
			f := claimFlags{verbose: verbose}
			e := &election{job: &job{v: &output{out: io.Discard, err: w}, name: "x"}, terms: make(chan electionTerm)}
			client := mustGet(pawl.New(backend, e.observe(f.options(e.v, &location{v: e.v}))))(t)
			defer client.Close()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- client.Election("x").Run(ctx, e.lead) }()
			time.Sleep(12 * time.Second)
			backend.down.Store(false)
			select {
			case term := <-e.terms:
				term.end <- errDone
			case <-time.After(15 * time.Second):
				t.Error("the backend is back, and the election does not lead")
			}
			cancel()
			<-ended
		})
	}
}
