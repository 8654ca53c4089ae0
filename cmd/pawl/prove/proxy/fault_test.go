package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestCutResetsHalfOfTheNewConnections(t *testing.T) {
	e := startEcho(t)
	p := startProxy(t, e.addr)
	old := p.worker(t)
	old.exchanges("hello")
	end := p.Begin(Fault{Kind: history.Cut, Seed: 1})
	old.wantReset()
	if err := receive(t, e.ended); !isReset(err) {
		t.Errorf("the server sees %v, want a reset", err)
	}
	const dialed = 64
	worked := 0
	for range dialed {
		if p.works(t, "hello") {
			worked++
		}
	}
	if worked < dialed/4 || worked > dialed*3/4 {
		t.Errorf("%d of %d connections worked, want about half", worked, dialed)
	}
	if hit := end(); hit != 1+dialed-worked {
		t.Errorf("%d connections were hit, want %d", hit, 1+dialed-worked)
	}
	for range 16 {
		p.worker(t).exchanges("hello")
	}
}

func TestDelayKeepsTheOrder(t *testing.T) {
	e := startEcho(t)
	p := startProxy(t, e.addr)
	w := p.worker(t)
	const pieces, milliseconds = 25, 20
	begin := time.Now()
	end := p.Begin(Fault{Kind: history.Delay, MaxDelay: milliseconds * time.Millisecond, Seed: 7})
	for i := range pieces {
		w.exchanges(fmt.Sprint(i))
	}
	took := time.Since(begin)
	if hit := end(); hit != 2*pieces {
		t.Errorf("%d pieces were hit, want %d", hit, 2*pieces)
	}
	if minimum := pieces * milliseconds * time.Millisecond / 2; took < minimum { // half of the mean
		t.Errorf("%d requests took %v, want %v or more", pieces, took, minimum)
	}

	// Many pieces are delayed at the same time.
	defer p.Begin(Fault{Kind: history.Delay, MaxDelay: 5 * time.Millisecond, Seed: 8})()
	go func() {
		for i := range 200 {
			_, _ = fmt.Fprintln(w, i)
			time.Sleep(100 * time.Microsecond) // so that each is a piece
		}
	}()
	for i := range 200 {
		w.receives(fmt.Sprint(i))
	}
}

// When a fault ends, the proxy delivers delayed data at once.
func TestTheEndOfADelayDeliversTheData(t *testing.T) {
	for _, kind := range []string{history.Delay, history.Reorder} {
		t.Run(kind, func(t *testing.T) {
			e := startEcho(t)
			p := startProxy(t, e.addr)
			a, b := p.worker(t), p.worker(t)
			for _, w := range []*worker{a, b} { // so that both are connected
				w.exchanges("hello")
				e.waitReceived(t, "hello")
			}
			end := p.Begin(Fault{Kind: kind, MaxDelay: 1000 * time.Hour, Seed: 3})
			a.sends("one")
			a.sends("two")
			b.sends("one")
			b.sends("two")
			p.waitHits(t, 1)
			if hit := end(); hit < 1 || hit > 4 {
				t.Errorf("%d pieces were hit, want 1 to 4", hit)
			}
			for _, w := range []*worker{a, b} {
				w.receives("one")
				w.receives("two")
				w.exchanges("three")
			}
		})
	}
}

func TestReorderLetsARequestOvertakeAnother(t *testing.T) {
	e := startEcho(t)
	p := startProxy(t, e.addr)
	for s := range uint64(4) {
		workers := map[bool]*worker{}
		const delay = 300 * time.Millisecond
		one, two := p.worker(t), p.worker(t)
		for _, w := range []*worker{one, two} { // so that both are connected
			w.exchanges("hello")
			e.waitReceived(t, "hello")
		}
		end := p.Begin(Fault{Kind: history.Reorder, MaxDelay: delay, Seed: s})
		p.locked(func() bool {
			workers[p.fault.delays[one.link]], workers[p.fault.delays[two.link]] = one, two
			return true
		})
		if len(workers) != 2 {
			t.Fatalf("seed %d: want a delay on exactly one of two connections", s)
		}
		begin := time.Now()
		workers[true].sends("first")
		p.waitHits(t, 1)
		for range 3 {
			workers[false].exchanges("second")
			e.waitReceived(t, "second")
		}
		e.waitReceived(t, "first")
		if took := time.Since(begin); took < delay {
			t.Errorf("a delayed request arrived after %v", took)
		}
		workers[true].receives("first")
		if took := time.Since(begin); took < 2*delay {
			t.Errorf("the delayed reply arrived after %v", took)
		}
		if hit := end(); hit != 2 {
			t.Errorf("%d pieces were hit, want 2", hit)
		}
		for _, w := range workers {
			_ = w.Close()
			receive(t, e.ended)
		}
		p.eventually(t, func() bool { return len(p.links) == 0 })
	}
}

// The fault delays half of the connections to each target, old and new ones.
func TestReorderChoosesHalfOfEachTarget(t *testing.T) {
	e := startEcho(t)
	p := startProxy(t, e.addr, e.addr)
	dialAll := func() (all []net.Conn) {
		for _, addr := range p.Addresses() {
			for range 3 {
				all = append(all, must(new(net.Dialer).DialContext(t.Context(), "tcp", addr))(t))
			}
		}
		return all
	}
	all := dialAll()
	p.eventually(t, func() bool { return len(p.links) == 6 })
	defer p.Begin(Fault{Kind: history.Reorder, MaxDelay: time.Hour})()
	all = append(all, dialAll()...)
	p.eventually(t, func() bool {
		delayed := 0
		for _, l := range p.links {
			if p.fault.delays[l] {
				delayed++
			}
		}
		return len(p.links) == 12 && delayed == 6
	})
	for _, c := range all {
		_ = c.Close()
	}
}

// A worker sends a request and closes the connection. The server receives the request,
// and then the end of the stream.
func TestTheRequestOfAClosedConnectionArrives(t *testing.T) {
	for _, kind := range []string{history.Delay, history.Silence, history.Swallow} {
		t.Run(kind, func(t *testing.T) {
			e := startEcho(t)
			p := startProxy(t, e.addr)
			w := p.worker(t)
			w.exchanges("hello")
			e.waitReceived(t, "hello")
			end := p.Begin(Fault{Kind: kind, MaxDelay: 30 * time.Millisecond, Seed: silenceSeed(false)})
			w.sends("lock")
			p.waitHits(t, 1) // with Swallow, the server has answered
			_ = w.Close()
			p.eventually(t, func() bool { return w.link.requests.end != streamOpen })
			if kind == history.Silence {
				end()
			}
			e.waitReceived(t, "lock")
			if err := receive(t, e.ended); kind == history.Delay && !errors.Is(err, io.EOF) && !isReset(err) {
				t.Errorf("the stream ends with %v, want EOF or a reset", err)
			}
			end()
			p.eventually(t, func() bool { return len(p.links) == 0 })
		})
	}
}

func TestSwallowDropsReplies(t *testing.T) {
	e := startEcho(t)
	p := startProxy(t, e.addr)
	w, unused := p.worker(t), p.worker(t)
	w.exchanges("hello")
	unused.exchanges("hello")
	e.waitReceived(t, "hello")
	e.waitReceived(t, "hello")
	end := p.Begin(Fault{Kind: history.Swallow})
	fresh := p.worker(t)
	for i, w := range []*worker{w, w, fresh} {
		w.sends("lock")
		e.waitReceived(t, "lock")
		p.waitHits(t, i+1)
	}
	if hit := end(); hit != 3 {
		t.Errorf("%d replies were dropped, want 3", hit)
	}
	w.wantReset() // without a reply before
	fresh.wantReset()
	unused.exchanges("hello")
	p.worker(t).exchanges("hello")
}

// If Swallow has dropped a reply, the worker sees a reset although the server closes the
// stream properly.
func TestSwallowEndsWithAReset(t *testing.T) {
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = readLine(c)
		_, _ = io.WriteString(c, "granted\n")
	}))
	w := p.worker(t)
	end := p.Begin(Fault{Kind: history.Swallow})
	w.sends("lock")
	p.eventually(t, func() bool { return w.link.replies.end != streamOpen })
	w.sends("unlock") // the server is gone
	w.sends("unlock")
	p.eventually(t, func() bool { return w.link.requests.failed || len(w.link.requests.queue) == 0 })
	if hit := end(); hit != 1 {
		t.Errorf("%d replies were dropped, want 1", hit)
	}
	w.wantReset()
}

func TestSilenceHoldsDataBack(t *testing.T) {
	for _, resets := range []bool{false, true} {
		t.Run(fmt.Sprint(resets), func(t *testing.T) {
			e := startEcho(t)
			p := startProxy(t, e.addr)
			old := p.worker(t)
			old.exchanges("hello")
			e.waitReceived(t, "hello")
			end := p.Begin(Fault{Kind: history.Silence, Seed: silenceSeed(resets)})
			fresh := p.worker(t)
			old.sends("one")
			p.waitHits(t, 1)
			fresh.sends("one")
			p.waitHits(t, 2)
			old.sends("two")
			p.waitHits(t, 3)

			// No data may pass before the fault ends.
			_ = old.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := old.lines.ReadByte(); !isTimeout(err) {
				t.Errorf("a read of a silent connection returns %v, want a timeout", err)
			}
			_ = old.SetReadDeadline(time.Now().Add(timeout))
			if len(e.received) > 0 || len(e.ended) > 0 {
				t.Error("the server received data or an end")
			}
			if hit := end(); hit != 3 {
				t.Errorf("%d pieces were held back, want 3", hit)
			}
			if resets {
				old.wantReset()
				fresh.wantReset()
				p.worker(t).exchanges("hello")
				return
			}
			old.receives("one")
			old.receives("two")
			fresh.receives("one")
			old.exchanges("three")
			fresh.exchanges("two")
		})
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestBeginPanicsDuringAnotherFault(t *testing.T) {
	p := startProxy(t)
	panics := func(f Fault) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("Begin(%+v) does not panic", f)
			}
		}()
		p.Begin(f)
	}
	end := p.Begin(Fault{Kind: history.Delay})
	panics(Fault{Kind: history.Delay})
	if end() != 0 {
		t.Error("a fault without data has hits")
	}
	next := p.Begin(Fault{Kind: history.Cut})
	end() // does not end the next fault
	panics(Fault{Kind: history.Delay})
	next()
	p.Begin(Fault{Kind: history.Swallow})()
}

// Consecutive seeds decide differently, and the same seed decides the same.
func TestTheSeedDecidesAboutTheReset(t *testing.T) {
	resets := 0
	for s := range uint64(1000) {
		r := [2]bool{}
		for i := range r {
			p := &Proxy{}
			end := p.Begin(Fault{Kind: history.Silence, Seed: s})
			r[i] = p.fault.resets
			end()
		}
		if r[0] != r[1] {
			t.Fatalf("the seed %d decides differently the second time", s)
		}
		if r[0] {
			resets++
		}
	}
	if resets < 400 || resets > 600 {
		t.Errorf("%d of 1000 seeds end with a reset, want about half", resets)
	}
}

// Under random faults no stream has a gap, and no goroutine is left.
func TestNoStreamHasAGap(t *testing.T) {
	echo := startServer(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(c, c) })
	p := startProxy(t, echo, echo)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for life := 0; ; life++ {
				select {
				case <-stop:
					return
				default:
					exchangeNumbers(t, p.Addresses()[n%2], fmt.Sprint(n, " ", life), stop)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for i := range 60 {
		kind := history.NetworkFaults[i%len(history.NetworkFaults)]
		f := Fault{Kind: kind, MaxDelay: 3 * time.Millisecond, Seed: random.Uint64()}
		end := p.Begin(f)
		for begin := time.Now(); time.Since(begin) < 10*time.Millisecond; time.Sleep(time.Millisecond) {
			if random.IntN(50) == 0 {
				p.Cut()
			}
		}
		end()
	}
	close(stop)
	p.Cut()
	p.Close()
	workers.Wait()
	noGoroutineLeft(t)
}

// exchangeNumbers sends up to 500 numbers until the connection breaks or stop is closed,
// and checks that they come back in order.
func exchangeNumbers(t *testing.T, addr, name string, stop chan struct{}) {
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return // the proxy is closed
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(timeout))
	var writer sync.WaitGroup
	defer writer.Wait()
	broken := false
	writer.Go(func() {
		for i := range 500 {
			if _, err := fmt.Fprintln(c, name, i); err != nil {
				broken = true
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	})
	lines := bufio.NewReader(c)
	for i := 0; ; i++ {
		got, err := lines.ReadString('\n')
		switch want := fmt.Sprintln(name, i); {
		case errors.Is(err, io.EOF) && i < 500:
			// If the writer has seen a reset, the reader sees EOF.
			if writer.Wait(); !broken {
				t.Errorf("%s: a proper end after %d of 500 lines", name, i)
			}
			return
		case err != nil && isTimeout(err):
			t.Errorf("%s: no line comes back after %d lines", name, i)
			return
		case err != nil:
			_ = c.Close() // the writer ends, too
			return
		case got != want:
			t.Errorf("%s: %q comes back, want %q", name, got, want)
			return
		}
	}
}
