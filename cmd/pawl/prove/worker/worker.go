// Package worker is one process of a run of pawl prove: it takes locks, works while it
// holds them, and reports its claims to the controller.
//
// It reads its Config and the answers of the register on standard input, and writes
// messages to standard output, as lines of JSON. Its Client is Pawl, or another lock for
// comparison.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Crashed is the exit code of a worker after a Crash.
const Crashed = 3

// A worker is one process.
type worker struct {
	Config
	nextID   atomic.Int64
	crash    atomic.Bool // the next section ends the process
	overstay atomic.Bool // the next section works on after its lease is over

	draining context.Context
	drain    context.CancelFunc

	linesMu   sync.Mutex // one line at a time
	lines     *json.Encoder
	answersMu sync.Mutex
	answers   map[int64]chan Answer // by claim

	pace <-chan time.Time // gets a time for each claim; nil if Rate has no limit
}

// Run runs the worker, and returns its exit code. It reads the Config from in.
func Run(in io.Reader, out io.Writer, open Opener) int {
	lines := json.NewDecoder(bufio.NewReader(in))
	w := &worker{lines: json.NewEncoder(out), answers: map[int64]chan Answer{}}
	if err := lines.Decode(&w.Config); err != nil {
		fmt.Fprintln(os.Stderr, "pawl prove: this is a worker; the controller starts it:", err)
		return 1
	}
	if w.Rate > 0 {
		w.pace = time.Tick(max(1, time.Duration(float64(time.Second)/w.Rate)))
	}
	w.nextID.Store(w.FirstID)
	w.draining, w.drain = context.WithCancel(context.Background())
	defer w.drain()
	go w.readOrders(lines)
	go WatchPauses(nil, &w.Config, w.Worker, func(f *history.Fault) { w.send(Message{Line: &history.Line{Fault: f}}) })
	if err := w.work(open); err != nil {
		w.send(Message{Error: err.Error()})
		return 1
	}
	w.send(Message{Bye: true})
	return 0
}

// readOrders follows the orders of the controller. It ends the process if the controller
// is gone.
func (w *worker) readOrders(lines *json.Decoder) {
	for {
		var o Order
		if err := lines.Decode(&o); err != nil {
			os.Exit(1)
		}
		switch {
		case o.Answer != nil:
			w.answersMu.Lock()
			c := w.answers[o.Answer.Claim]
			delete(w.answers, o.Answer.Claim)
			w.answersMu.Unlock()
			c <- *o.Answer
		case o.Do == "drain":
			w.drain()
		case o.Do == history.Crash:
			w.crash.Store(true)
		case o.Do == history.Overstay:
			w.overstay.Store(true)
		}
	}
}

func (w *worker) now() int64 { return Now() - w.Epoch }

func (w *worker) send(m Message) {
	w.linesMu.Lock()
	err := w.lines.Encode(m)
	w.linesMu.Unlock()
	if err != nil {
		os.Exit(1) // the controller is gone
	}
}

// ask sends a request to the register. A claim has at most one request at a time.
func (w *worker) ask(q Ask) Answer {
	c := make(chan Answer, 1)
	w.answersMu.Lock()
	w.answers[q.Claim] = c
	w.answersMu.Unlock()
	w.send(Message{Ask: &q})
	return <-c
}

// work opens the clients, lets all actors act until the worker drains, and closes the
// clients.
func (w *worker) work(open Opener) error {
	clients := make([]Client, 0, w.Clients)
	for i := range w.Clients {
		c, err := w.openClient(open, i)
		if err != nil {
			return err
		}
		if c != nil {
			clients = append(clients, c)
		}
	}
	w.send(Message{Ready: true})
	var actors sync.WaitGroup
	for i, c := range clients {
		for j := range w.Actors {
			a := &actor{worker: w, client: c, index: i, leads: j == 0 && i == 0}
			a.dice = rand.New(rand.NewPCG(w.Seed, uint64(w.Worker)<<32|uint64(w.Life)<<16|uint64(i)<<8|uint64(j)))
			actors.Go(a.act)
		}
	}
	actors.Wait()
	for _, c := range clients {
		_ = c.Close() // the Left lines show leases that it could not release
	}
	if !isMemory(w.URL) {
		return nil
	}
	names, err := leftInMemory(&w.Config)
	for _, l := range names {
		l.At = w.now()
		w.send(Message{Line: &history.Line{Left: &l}})
	}
	return err
}

// openClient retries for longer than a fault keeps the database down.
func (w *worker) openClient(open Opener, i int) (Client, error) {
	const timeout = 60 * time.Second
	for begun := time.Now(); ; {
		ctx, cancel := context.WithTimeout(w.draining, 10*time.Second)
		c, err := open(ctx, &w.Config, i)
		cancel()
		if err == nil {
			return c, nil
		}
		if w.draining.Err() != nil {
			return nil, nil //nolint:nilerr // the worker ends without it
		}
		if time.Since(begun) > timeout {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitTurn waits until Rate permits another claim.
func (w *worker) awaitTurn() {
	if w.pace == nil {
		return
	}
	select {
	case <-w.pace:
	case <-w.draining.Done():
	}
}
