package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// Without an Observer, the code that calls the Observer allocates nothing.
func TestWithoutAnObserverNothingIsAllocatedForIt(t *testing.T) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1 // every allocation
	defer func() { runtime.MemProfileRate = rate }()

	allocations := func(o *pawl.Observer) int64 {
		c := must(pawl.New(memlock.New(nil), &pawl.Options{Observer: o}))(t)
		defer c.Close()
		before := observerAllocs()
		for range 1000 {
			lease := must(c.Mutex("x").Lock(background))(t)
			noError(t, lease.Release(background))
		}
		return observerAllocs() - before
	}
	wantEqual(t, "allocations in 1000 cycles without an Observer", allocations(nil), 0)
	o := &pawl.Observer{Acquired: func(pawl.AcquiredEvent) {}, Released: func(pawl.ReleasedEvent) {}}
	// The lower bound shows that the test sees allocations.
	wantWithin(t, "allocations in 1000 cycles with an Observer", allocations(o), 1000, 100_000)
}

// observerAllocs returns the number of allocations that were made for the Observer: by
// the functions that call it, or below them.
func observerAllocs() (n int64) {
	functions := regexp.MustCompile(`/pawl\.\(\*\w+\)\.(announce|reportEnd|reportRelease|lossReport|event|lateEvent|reportQueued|reportNotAcquired|reportFailed)\b`)
	runtime.GC() // the profile is complete after two collections
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1000)
	for {
		count, ok := runtime.MemProfile(records, true)
		if records = records[:min(count, len(records))]; ok {
			break
		}
		records = make([]runtime.MemProfileRecord, 2*count)
	}
	for _, r := range records {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var frame runtime.Frame
			if frame, more = frames.Next(); functions.MatchString(frame.Function) {
				n += r.AllocObjects
				break
			}
		}
	}
	return n
}

func TestLogObserverLogsEachEvent(t *testing.T) {
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
		lease := must(a.Mutex("x").Lock(background))(t)
		_, _ = a.Mutex("x").TryLock(background)
		ctx := timeoutCtx(t, time.Second)
		_, _ = a.Mutex("x").Lock(ctx)
		noError(t, lease.Release(background))
		held := must(b.Mutex("x").Lock(background))(t)
		time.AfterFunc(time.Minute, func() { _ = held.Release(background) })
		lost := must(a.Mutex("x").Lock(background))(t)
		noError(t, b.Break(background, "x", lost.Fence(), noDelay))
		<-lost.Done()
		must(a.Mutex("z").Lock(background))(t)
		net.down()
		_, _ = a.Mutex("y").TryLock(background)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, want := range []string{
			`level=DEBUG msg="lock acquired" name=x fence=`, `level=INFO msg="lock refused" name=x`, `level=DEBUG msg="lock queued" name=x position=1`,
			`level=WARN msg="lock refused" name=x waited=1s`, `level=DEBUG msg="lock released" name=x fence=`, `level=ERROR msg="lock lost" name=x fence=`,
			`level=WARN msg="lock backend failed" op=acquire name=y claims=1`, `level=WARN msg="lock refused" name=y`,
			" waited=0s\n", " waited=1m0s\n", " held=1s\n", "backend unreachable", "op=renew",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the log has no %s:\n%s", want, text.String())
			}
		}
	})
}

// A trace has to find the call of an event, and all events of a claim.
func TestEventsHaveTheValuesOfTheCallAndOneIDForEachClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		c, net := w.client(&pawl.Options{Observer: events.observer()})
		first := must(c.Mutex("x").Lock(spanCtx("first")))(t)
		endedCtx, end := context.WithCancel(spanCtx("release"))
		end()
		time.AfterFunc(time.Second, func() { _ = first.Release(endedCtx) })
		ctx, cancel := context.WithCancel(spanCtx("second"))
		must(c.Mutex("x").Lock(ctx))(t)
		cancel()
		time.Sleep(time.Second)
		net.down()
		time.Sleep(time.Minute)
		synctest.Wait()

		type key struct{ what, span string }
		ids := map[key]uint64{}
		for _, e := range events.all() {
			if e.Name != "x" || e.Claim == 0 {
				t.Errorf("%s: name %q, claim %d", e.kind, e.Name, e.Claim)
			}
			if (e.kind == "lost" || e.kind == "released") && e.Ctx.Err() != nil {
				t.Errorf("%s has a ctx that has ended", e.kind)
			}
			s, _ := e.Ctx.Value(spanKey{}).(string)
			ids[key{e.kind, s}] = e.Claim
		}
		a, b := ids[key{"acquired", "first"}], ids[key{"acquired", "second"}]
		if a == b {
			t.Error("two claims have the same ID")
		}
		for k, id := range map[key]uint64{
			{"released", "release"}: a, {"queued", "second"}: b, {"failed", "second"}: b, {"lost", "second"}: b,
		} {
			if ids[k] != id || id == 0 {
				t.Errorf("%v is of claim %d, want %d; the claims are %v", k, ids[k], id, ids)
			}
		}
	})
}

// An event of a repeated release has the ID of the claim that had the lease last.
func TestReleaseThatIsRepeatedFailsUnderTheIDOfItsClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		c, net := w.client(&pawl.Options{Observer: events.observer()})
		other := lockWithFencesToSpare(t, w, c)
		last := make(chan *pawl.Lease)
		go func() { last <- must(c.Mutex("x").Lock(spanCtx("last")))(t) }()
		synctest.Wait()
		noError(t, other.Release(background))
		lease := <-last
		up := net.down()
		isError(t, lease.Release(background), pawl.ErrUnavailable)
		isError(t, errOf(c.Mutex("y").TryLock(spanCtx("try"))), pawl.ErrUnavailable)
		time.Sleep(5 * time.Second)
		up()
		synctest.Wait()

		ids, failed := map[string]uint64{}, map[uint64]int{}
		for _, e := range events.all() {
			switch by, _ := e.Ctx.Value(spanKey{}).(string); {
			case e.kind == "acquired" || e.kind == "refused":
				ids[by] = e.Claim
			case e.kind == "failed":
				failed[e.Claim]++
			}
		}
		if failed[ids["last"]] < 3 || failed[ids["try"]] < 3 || len(failed) != 2 {
			t.Errorf("the claims are %v, and the failures by claim %v; want 3 or more of last and of try", ids, failed)
		}
	})
}

func TestSkippedRunsCanBeCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var refused []pawl.NotAcquiredEvent
		c, _ := w.client(&pawl.Options{Observer: &pawl.Observer{
			NotAcquired: func(e pawl.NotAcquiredEvent) { refused = append(refused, e) },
		}})
		other, _ := w.client(nil)
		held := must(other.Mutex("x").Lock(background))(t)
		_, err := c.Mutex("x").TryDo(spanCtx("run"), func(context.Context) error { return nil })
		noError(t, err)
		if len(refused) != 1 || !refused[0].Try || !errors.Is(refused[0].Err, pawl.ErrHeld) || refused[0].Name != "x" ||
			refused[0].Claim == 0 || refused[0].Ctx.Value(spanKey{}) != "run" {
			t.Fatalf("the events are %+v", refused)
		}
		ctx := timeoutCtx(t, time.Second)
		_, err = c.Mutex("x").Lock(ctx)
		isError(t, err, context.DeadlineExceeded)
		if len(refused) != 2 || refused[1].Try || refused[1].Err != err || refused[1].Waited != time.Second {
			t.Fatalf("the events are %+v", refused)
		}
		synctest.Wait() // its place in the queue is given back
		noError(t, held.Release(background))
		_, err = c.Mutex("x").TryDo(background, func(context.Context) error { return nil })
		noError(t, err)
		if len(refused) != 2 {
			t.Errorf("a run was reported as skipped: %+v", refused[2])
		}
	})
}

// Each function of the joined Observer calls the functions of all observers, in order.
func TestJoinObserversCallsEachObserver(t *testing.T) {
	var called []string
	newObserver := func(name string) *pawl.Observer {
		o := &pawl.Observer{}
		v := reflect.ValueOf(o).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
				called = append(called, name+" "+field)
				return nil
			}))
		}
		return o
	}
	all := reflect.ValueOf(pawl.JoinObservers(newObserver("a"), nil, &pawl.Observer{}, newObserver("b"))).Elem()
	for i := range all.NumField() {
		called = nil
		all.Field(i).Call([]reflect.Value{reflect.Zero(all.Field(i).Type().In(0))})
		field := all.Type().Field(i).Name
		if want := []string{"a " + field, "b " + field}; !slices.Equal(called, want) {
			t.Errorf("called %q, want %q", called, want)
		}
	}
	none := reflect.ValueOf(pawl.JoinObservers(nil, &pawl.Observer{})).Elem()
	for i := range none.NumField() {
		if !none.Field(i).IsNil() {
			t.Errorf("%s of no observers is not nil", none.Type().Field(i).Name)
		}
	}
}
