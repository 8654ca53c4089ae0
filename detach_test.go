package pawl_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// Two clients that attach one handle hold one lease: a release ends it for both.
func TestAnotherProcessGoesOnWithADetachedLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		b, c := w.twoClients()
		lease := must(a.Mutex("x").Lock(background))(t)
		time.Sleep(time.Second)
		handle := must(lease.Detach(background))(t)
		isError(t, lease.Err(), pawl.ErrDetached)
		isError(t, lease.Release(background), pawl.ErrDetached)
		noError(t, a.Close())

		time.Sleep(8 * time.Second)
		isError(t, errOf(c.Mutex("x").TryLock(background)), pawl.ErrHeld)
		again := must(b.Attach(background, handle))(t)
		if again.Fence() != lease.Fence() || again.Name() != "x" {
			t.Errorf("attached the %v, want the lease of x with the fence %d", again, lease.Fence())
		}
		time.Sleep(time.Minute)
		noError(t, again.Err()) // it is renewed
		isError(t, errOf(c.Mutex("x").TryLock(background)), pawl.ErrHeld)
		second := must(c.Attach(background, handle))(t)
		wantEqual(t, "the fence of the second lease", second.Fence(), again.Fence())
		noError(t, again.Release(background))
		isError(t, second.Confirm(background), pawl.ErrLost)
		isError(t, second.Release(background), pawl.ErrLost)
		w.wantFree("x")

		isError(t, errOf(b.Attach(background, handle)), pawl.ErrLost)
	})
}

// Attach refuses a handle of another kind of backend. Two locations of one kind may be
// addresses of one server, so Attach tries. If the lease is not held there, the error
// names both locations.
func TestAttachNamesTheServerOfAForeignHandle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clientAt := func(kind, location string, memory *memlock.Memory) *pawl.Client {
			return w.clientOf(&network{Driver: engine.Full(memory.Driver()), properties: func(p *driver.Properties) {
				p.Backend, p.Location = kind, location
			}}, nil)
		}
		other := memlock.NewMemory(nil)
		here := clientAt("redis", "redis a:6379", w.memory)
		handle := must(must(here.Mutex("x").Lock(background))(t).Detach(background))(t)
		_, err := clientAt("postgres", "postgres a:5432", other).Attach(background, handle)
		isError(t, err, pawl.ErrInvalid)
		if !strings.Contains(err.Error(), "redis") || !strings.Contains(err.Error(), "postgres") {
			t.Errorf("the error is %v, want both kinds of backend in it", err)
		}
		oddHandle := must(must(clientAt("re\x1b[2Jdis", "", w.memory).Mutex("z").Lock(background))(t).Detach(background))(t)
		_, err = here.Attach(background, oddHandle)
		if isError(t, err, pawl.ErrInvalid); !strings.Contains(err.Error(), `"re\x1b[2Jdis"`) {
			t.Errorf("the error is %q, want the kind of backend quoted", err)
		}

		_, err = clientAt("redis", "redis b:6379", other).Attach(background, handle)
		isError(t, err, pawl.ErrLost)
		if text := err.Error(); !strings.HasSuffix(text, `expired: the handle is of a lease on "redis a:6379", and this is "redis b:6379"`) {
			t.Errorf("the error is %s, want both locations in it", text)
		}
		hosts := "redis " + strings.Repeat("host-of-a-large-cluster:6379,", 20) + "z:6379"
		prefixHandle := must(must(clientAt("redis", hosts+" prefix=one:", w.memory).Mutex("y").Lock(background))(t).Detach(background))(t)
		_, err = clientAt("redis", hosts+" prefix=two:", other).Attach(background, prefixHandle)
		if err == nil || !strings.Contains(err.Error(), "prefix=one:") || !strings.Contains(err.Error(), "prefix=two:") {
			t.Errorf("for two prefixes of a large cluster the error is %v", err)
		}
		lease := must(clientAt("redis", "redis localhost:6379", w.memory).Attach(background, handle))(t) // another URL
		noError(t, lease.Release(background))
		_, err = here.Attach(background, handle)
		isError(t, err, pawl.ErrLost)
		if lost, _ := errors.AsType[*pawl.LostError](err); lost.Err != nil {
			t.Errorf("the error is %v; want one that names no other server", err)
		}
	})
}

// A renewal that is under way could keep the lease alive after the next holder has died.
// So Detach waits for it, and then confirms the lease. A renewal is due after 8.75 to
// 10 s.
func TestDetachWaitsForARenewalThatBeginsMeanwhile(t *testing.T) {
	for when, c := range map[string]struct {
		wait    func(net *network)
		latency time.Duration
		least   time.Duration
	}{
		"is under way": {func(net *network) {
			for net.count("renew") == 0 {
				time.Sleep(time.Millisecond)
			}
		}, time.Second, 2*time.Second - time.Millisecond},
		"begins meanwhile": {func(*network) {}, 2 * time.Second, 2050 * time.Millisecond},
	} {
		runInWorld(t, when, func(t *testing.T, w *world) {
			a, net := w.client(nil)
			lease := must(a.Mutex("x").Lock(background))(t)
			time.Sleep(8700 * time.Millisecond)
			net.setLatency(c.latency)
			c.wait(net)
			took := must(timed(func() error { return errOf(lease.Detach(background)) }))(t)
			time.Sleep(time.Minute)
			wantWithin(t, "Detach, which waits for the answer to the second renewal, took", took, c.least, time.Minute)
			wantEqual(t, "renewals", net.count("renew"), 2)
		})
	}
}

// A maximum hold belongs to the holder, not to the lease: the next holder has its whole
// TTL.
func TestAMaximumHoldIsNotInTheHandle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 30 * time.Second})
		handle, err := must(a.Mutex("x").Lock(background))(t).Detach(background)
		noError(t, err)
		for range 2 {
			handle, err = must(a.Attach(background, handle, pawl.WithMaxHold(time.Second)))(t).Detach(background)
			noError(t, err)
		}
		time.Sleep(2 * time.Second)
		lease := must(a.Attach(background, handle))(t)
		wantWithin(t, "the lease ends in", time.Until(lease.Deadline()), 20*time.Second, 30*time.Second)
	})
}

// One client may attach a handle twice. Each lease learns of the loss at once, whether or
// not the other one still exists.
func TestALeaseThatIsAttachedTwiceDetectsItsLoss(t *testing.T) {
	for name, attachAgain := range map[string]func(t *testing.T, c *pawl.Client, net *network, handle pawl.Handle){
		"the other is well": func(t *testing.T, c *pawl.Client, _ *network, handle pawl.Handle) {
			must(c.Attach(background, handle))(t)
		},
		"the other could not be attached": func(t *testing.T, c *pawl.Client, net *network, handle pawl.Handle) {
			up := net.down()
			isError(t, errOf(c.Attach(background, handle)), pawl.ErrUnavailable)
			up()
		},
		"the other is detached": func(t *testing.T, c *pawl.Client, _ *network, handle pawl.Handle) {
			_, err := must(c.Attach(background, handle))(t).Detach(background)
			noError(t, err)
		},
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, net, b := w.twoWithNetwork()
			handle := must(must(a.Mutex("x").Lock(background))(t).Detach(background))(t)
			first := must(a.Attach(background, handle))(t)
			attachAgain(t, a, net, handle)
			broken := time.Now()
			noError(t, b.Break(background, "x", first.Fence(), &pawl.BreakOptions{Delay: time.Minute}))
			<-first.Done()
			wantEqual(t, "the loss was detected after", time.Since(broken), 0)
			noError(t, a.Close())
			wantNothingLeft(t, a)
		})
	}
}

func TestALeaseThatCannotBeConfirmedIsNotDetached(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, net *network) {
		lease := must(a.Mutex("x").Lock(background))(t)
		up := net.down()
		isError(t, errOf(lease.Detach(background)), pawl.ErrUnavailable)
		noError(t, lease.Err())
		up()
		time.Sleep(time.Hour)
		noError(t, lease.Err())
		noError(t, lease.Release(background))
	})
}

// A handle has one fence, so an attached lease is not passed on inside the process.
func TestAnAttachedLeaseHasOneFence(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, net *network) {
		handle := must(must(a.Mutex("x").Lock(background))(t).Detach(background))(t)
		lease := must(a.Attach(background, handle))(t)
		next := startLock(t, a.Mutex("x"))
		noError(t, lease.Release(background))
		noError(t, (<-next).Release(background))
		wantEqual(t, "releases of two leases", net.count("release"), 2)
	})
}

// If Close begins during Attach, the lease stays held, and the handle stays valid.
func TestALeaseThatIsAttachedWhileTheClientClosesStaysHeld(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, net *network) {
		handle := must(must(a.Mutex("x").Lock(background))(t).Detach(background))(t)
		net.setLatency(time.Second)
		attached := make(chan error)
		go func() { attached <- errOf(a.Attach(background, handle)) }()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- a.Close() }()
		isError(t, <-attached, pawl.ErrClosed)
		noError(t, <-closed)
		if n := len(w.entry("x").Holders); n != 1 || a.Inboxes()+a.Leases() != 0 {
			t.Errorf("%d holders, %d inboxes and %d leases are left; want one holder", n, a.Inboxes(), a.Leases())
		}
	})
}

// Detach returns only when no earlier request can reach the backend any more.
func TestDetachWaitsForUnansweredRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var released int
		a, net := w.client(&pawl.Options{RequestTimeout: time.Second, Observer: &pawl.Observer{Released: func(e pawl.ReleasedEvent) {
			if released++; !errors.Is(e.Err, pawl.ErrDetached) {
				t.Errorf("the Released event has the error %v, want ErrDetached", e.Err)
			}
		}}})
		net.setHooks(nil, func(op string) error {
			if op == "acquire" && net.count("acquire") == 1 {
				return errNet
			}
			return nil
		})
		lease := must(a.Mutex("x").Lock(background))(t)
		took, err := timed(func() error { return errOf(lease.Detach(background)) })
		noError(t, err)
		wantWithin(t, "Detach, which waits until the unanswered attempt cannot arrive, took", took, 900*time.Millisecond, time.Minute)
		isError(t, lease.Release(background), pawl.ErrDetached)
		isError(t, lease.ReleaseUnused(background), pawl.ErrDetached)
		wantEqual(t, "Released events", released, 1)

		other := must(a.Mutex("y").Lock(background))(t)
		net.setHooks(nil, failRequests("renew"))
		isError(t, other.SetValue(background, []byte("one")), pawl.ErrUnavailable)
		net.setHooks(nil, nil)
		if took, err = timed(func() error { return errOf(other.Detach(background)) }); err != nil || took < 900*time.Millisecond {
			t.Errorf("Detach took %v, and the write of the value may still arrive: %v", took, err)
		}
	})
}

func TestAHandleThatWasAlteredIsRefused(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		handle := must(must(c.Mutex("x").Lock(background))(t).Detach(background))(t)
		renewals := net.count("renew")
		for i := range handle {
			for _, other := range "A7z_" {
				if altered := handle[:i] + pawl.Handle(other) + handle[i+1:]; altered != handle {
					isError(t, errOf(c.Attach(background, altered)), pawl.ErrInvalid)
				}
			}
		}
		for _, bad := range []pawl.Handle{
			"", "x", handle[1:], handle[:len(handle)-4], pawl.Handle(strings.ToUpper(string(handle))), "pawl1_e30", "pawl1_",
		} {
			_, err := c.Attach(background, bad)
			isError(t, err, pawl.ErrInvalid)
			if len(bad) > 1 && strings.Contains(err.Error(), string(bad)) {
				t.Errorf("the error shows a text that may be a secret: %v", err)
			}
		}
		for _, space := range []pawl.Handle{"\n", "\r", "\r\n", " "} { // base64 skips line ends
			for _, altered := range []pawl.Handle{handle + space, space + handle, handle[:20] + space + handle[20:]} {
				isError(t, errOf(c.Attach(background, altered)), pawl.ErrInvalid)
			}
		}
		wantEqual(t, "renewals", net.count("renew"), renewals)
		noError(t, must(c.Attach(background, handle))(t).Release(background))
	})
}

func TestAHandleDoesNotPrintItself(t *testing.T) {
	const handle = pawl.Handle("pawl1_c2VjcmV0")
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&printed, verb+"\n", handle)
		fmt.Fprintf(&printed, verb+"\n", struct{ H pawl.Handle }{handle})
	}
	slog.New(slog.NewTextHandler(&printed, nil)).Info("detached", "handle", handle)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("detached", "handle", handle)
	type job struct {
		Name   string
		Handle pawl.Handle
		All    []pawl.Handle
		Next   *pawl.Handle
	}
	h := handle
	slog.New(slog.NewTextHandler(&printed, nil)).Info("detached", "job", job{"x", h, []pawl.Handle{h}, &h})
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("detached", "job", job{"x", h, []pawl.Handle{h}, &h})
	for _, encode := range []func(any) ([]byte, error){json.Marshal, xml.Marshal} {
		printed.Write(must(encode(job{"x", h, []pawl.Handle{h}, &h}))(t))
	}
	if shown := fmt.Sprintf("%x", "c2VjcmV0"); strings.Contains(printed.String(), "c2VjcmV0") || strings.Contains(printed.String(), shown) {
		t.Errorf("the handle is shown:\n%s", &printed)
	}
}
