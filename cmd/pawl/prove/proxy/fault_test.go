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

func TestCutHitsHalfOfTheNewConnections(t *testing.T) {
	e := startEcho(t)
	p := start(t, e.addr)
	old := p.worker(t)
	old.isAnswered("hello")
	end := p.Begin(Fault{Kind: history.Cut, Seed: 1})
	old.isReset()
	if err := within(t, e.gone); !isReset(err) {
		t.Errorf("the server sees %v, not a reset", err)
	}
	const made = 64
	worked := 0
	for range made {
		if p.works(t, "hello") {
			worked++
		}
	}
	if worked < made/4 || worked > made*3/4 {
		t.Errorf("%d of %d connections worked", worked, made)
	}
	if hit := end(); hit != 1+made-worked {
		t.Errorf("%d connections were hit, not %d", hit, 1+made-worked)
	}
	for range 16 {
		p.worker(t).isAnswered("hello")
	}
}

func TestDelayKeepsTheOrder(t *testing.T) {
	e := startEcho(t)
	p := start(t, e.addr)
	w := p.worker(t)
	const pieces, milliseconds = 25, 20
	begin := time.Now()
	end := p.Begin(Fault{Kind: history.Delay, MaxDelay: milliseconds * time.Millisecond, Seed: 7})
	for i := range pieces {
		w.isAnswered(fmt.Sprint(i))
	}
	took := time.Since(begin)
	if hit := end(); hit != 2*pieces {
		t.Errorf("%d pieces were hit, not %d", hit, 2*pieces)
	}
	if least := pieces * milliseconds * time.Millisecond / 2; took < least { // the mean is the double of it
		t.Errorf("%d requests took %v, which is less than %v", pieces, took, least)
	}

	// Many pieces are on their way at the same time.
	defer p.Begin(Fault{Kind: history.Delay, MaxDelay: 5 * time.Millisecond, Seed: 8})()
	go func() {
		for i := range 200 {
			_, _ = fmt.Fprintln(w, i)
			time.Sleep(100 * time.Microsecond) // so that they are not one piece
		}
	}()
	for i := range 200 {
		w.hears(fmt.Sprint(i))
	}
}

// When a fault ends, the proxy delivers the data that is on its way at once.
func TestTheEndOfADelayDelivers(t *testing.T) {
	for _, kind := range []string{history.Delay, history.Reorder} {
		t.Run(kind, func(t *testing.T) {
			e := startEcho(t)
			p := start(t, e.addr)
			a, b := p.worker(t), p.worker(t)
			for _, w := range []*worker{a, b} { // both are connected
				w.isAnswered("hello")
				e.hasHeard(t, "hello")
			}
			end := p.Begin(Fault{Kind: kind, MaxDelay: 1000 * time.Hour, Seed: 3})
			a.says("one")
			a.says("two")
			b.says("one")
			b.says("two")
			p.hits(t, 1)
			if hit := end(); hit < 1 || hit > 4 {
				t.Errorf("%d pieces were hit", hit)
			}
			for _, w := range []*worker{a, b} {
				w.hears("one")
				w.hears("two")
				w.isAnswered("three")
			}
		})
	}
}

func TestReorderLetsARequestOvertakeAnother(t *testing.T) {
	e := startEcho(t)
	p := start(t, e.addr)
	for s := range uint64(4) {
		workers := map[bool]*worker{}
		const late = 300 * time.Millisecond
		one, two := p.worker(t), p.worker(t)
		for _, w := range []*worker{one, two} { // both reach the server
			w.isAnswered("hello")
			e.hasHeard(t, "hello")
		}
		end := p.Begin(Fault{Kind: history.Reorder, MaxDelay: late, Seed: s})
		p.locked(func() bool {
			workers[p.fault.delays[one.link]], workers[p.fault.delays[two.link]] = one, two
			return true
		})
		if len(workers) != 2 {
			t.Fatalf("seed %d: not one of two connections is late", s)
		}
		begin := time.Now()
		workers[true].says("first")
		p.hits(t, 1)
		for range 3 {
			workers[false].isAnswered("second")
			e.hasHeard(t, "second")
		}
		e.hasHeard(t, "first")
		if took := time.Since(begin); took < late {
			t.Errorf("a late request arrived after %v", took)
		}
		workers[true].hears("first")
		if took := time.Since(begin); took < 2*late {
			t.Errorf("its reply arrived after %v", took)
		}
		if hit := end(); hit != 2 {
			t.Errorf("%d pieces were hit, not 2", hit)
		}
		for _, w := range workers {
			_ = w.Close()
			within(t, e.gone)
		}
		p.eventually(t, func() bool { return len(p.links) == 0 })
	}
}

// Each target has as many late connections as others, also among those that are made
// during the fault.
func TestReorderChoosesHalfOfEachTarget(t *testing.T) {
	e := startEcho(t)
	p := start(t, e.addr, e.addr)
	targets := func() (all []net.Conn) {
		for _, addr := range p.Addresses() {
			for range 3 {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
				noError(t, err)
				all = append(all, c)
			}
		}
		return all
	}
	all := targets()
	p.eventually(t, func() bool { return len(p.links) == 6 })
	defer p.Begin(Fault{Kind: history.Reorder, MaxDelay: time.Hour})()
	all = append(all, targets()...)
	p.eventually(t, func() bool {
		late := 0
		for _, l := range p.links {
			if p.fault.delays[l] {
				late++
			}
		}
		return len(p.links) == 12 && late == 6
	})
	for _, c := range all {
		_ = c.Close()
	}
}

// A worker gives a request up, and closes the connection. The request arrives all the
// same, and the end of the stream behind it.
func TestARequestThatWasGivenUpArrives(t *testing.T) {
	for _, kind := range []string{history.Delay, history.Silence, history.Swallow} {
		t.Run(kind, func(t *testing.T) {
			e := startEcho(t)
			p := start(t, e.addr)
			w := p.worker(t)
			w.isAnswered("hello")
			e.hasHeard(t, "hello")
			end := p.Begin(Fault{Kind: kind, MaxDelay: 30 * time.Millisecond, Seed: seed(false)})
			w.says("lock")
			p.hits(t, 1) // with Swallow it has arrived already
			_ = w.Close()
			p.eventually(t, func() bool { return w.link.requests.end != streamOpen })
			if kind == history.Silence {
				end()
			}
			e.hasHeard(t, "lock")
			if err := within(t, e.gone); kind == history.Delay && !errors.Is(err, io.EOF) && !isReset(err) {
				t.Errorf("the stream ends with %v", err)
			}
			end()
			p.eventually(t, func() bool { return len(p.links) == 0 })
		})
	}
}

func TestSwallowDropsReplies(t *testing.T) {
	e := startEcho(t)
	p := start(t, e.addr)
	w, unused := p.worker(t), p.worker(t)
	w.isAnswered("hello")
	unused.isAnswered("hello")
	e.hasHeard(t, "hello")
	e.hasHeard(t, "hello")
	end := p.Begin(Fault{Kind: history.Swallow})
	fresh := p.worker(t)
	for i, w := range []*worker{w, w, fresh} {
		w.says("lock")
		e.hasHeard(t, "lock")
		p.hits(t, i+1)
	}
	if hit := end(); hit != 3 {
		t.Errorf("%d replies were dropped, not 3", hit)
	}
	w.isReset() // and it has not heard a reply before
	fresh.isReset()
	unused.isAnswered("hello")
	p.worker(t).isAnswered("hello")
}

// The server ends a stream that has lost a reply. The worker does not see a proper end.
func TestSwallowHasNoProperEnd(t *testing.T) {
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = bufioLine(c)
		_, _ = io.WriteString(c, "granted\n")
	}))
	w := p.worker(t)
	end := p.Begin(Fault{Kind: history.Swallow})
	w.says("lock")
	p.eventually(t, func() bool { return w.link.replies.end != streamOpen })
	w.says("unlock") // to no server
	w.says("unlock")
	p.eventually(t, func() bool { return w.link.requests.failed || len(w.link.requests.queue) == 0 })
	if hit := end(); hit != 1 {
		t.Errorf("%d replies were dropped, not 1", hit)
	}
	w.isReset()
}

func TestSilenceHoldsBack(t *testing.T) {
	for _, resets := range []bool{false, true} {
		t.Run(fmt.Sprint(resets), func(t *testing.T) {
			e := startEcho(t)
			p := start(t, e.addr)
			old := p.worker(t)
			old.isAnswered("hello")
			e.hasHeard(t, "hello")
			end := p.Begin(Fault{Kind: history.Silence, Seed: seed(resets)})
			fresh := p.worker(t)
			old.says("one")
			p.hits(t, 1)
			fresh.says("one")
			p.hits(t, 2)
			old.says("two")
			p.hits(t, 3)

			// Nothing may arrive before the fault ends.
			_ = old.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := old.lines.ReadByte(); !isTimeout(err) {
				t.Errorf("a silent connection has %v", err)
			}
			_ = old.SetReadDeadline(time.Now().Add(patience))
			if len(e.heard) > 0 || len(e.gone) > 0 {
				t.Error("something has arrived")
			}
			if hit := end(); hit != 3 {
				t.Errorf("%d pieces were held back, not 3", hit)
			}
			if resets {
				old.isReset()
				fresh.isReset()
				p.worker(t).isAnswered("hello")
				return
			}
			old.hears("one")
			old.hears("two")
			fresh.hears("one")
			old.isAnswered("three")
			fresh.isAnswered("two")
		})
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestBeginTakesOneFaultAtATime(t *testing.T) {
	p := start(t)
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
		t.Error("a fault without data has hit something")
	}
	next := p.Begin(Fault{Kind: history.Cut})
	end() // does not end the next one
	panics(Fault{Kind: history.Delay})
	next()
	p.Begin(Fault{Kind: history.Swallow})()
}

// Seeds that follow each other decide differently, and one seed always the same.
func TestTheSeedDecides(t *testing.T) {
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
		t.Errorf("%d of 1000 seeds reset", resets)
	}
}

// Under random faults, no worker reads a stream with a gap, and no goroutine is left.
func TestNoStreamHasAGap(t *testing.T) {
	echo := serve(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(c, c) })
	p := start(t, echo, echo)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for life := 0; ; life++ {
				select {
				case <-stop:
					return
				default:
					talk(t, p.Addresses()[n%2], fmt.Sprint(n, " ", life), stop)
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
	nothingIsLeft(t)
}

// talk sends numbers until the connection breaks or there is no time left, and checks
// that all come back in order. From time to time it ends its stream by itself.
func talk(t *testing.T, addr, name string, stop chan struct{}) {
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return // the proxy is closed
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
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
			// A reset that the writer has seen is an end for the reader.
			if writer.Wait(); !broken {
				t.Errorf("%s: a proper end after %d of 500 lines", name, i)
			}
			return
		case err != nil && isTimeout(err):
			t.Errorf("%s: nothing comes back after %d lines", name, i)
			return
		case err != nil:
			_ = c.Close() // the writer ends, too
			return
		case got != want:
			t.Errorf("%s: %q comes back, not %q", name, got, want)
			return
		}
	}
}
