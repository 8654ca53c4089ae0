package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/skip"
)

// ticksVariable is the number of ticks, if it is set: `make ticks` has a thousand.
const ticksVariable = "PAWL_TICKS"

// Four hosts start the same pawl once at each tick of a schedule, as their crons would.
// Their clocks differ by a quarter of the period. Each tick runs on one of them.
func TestOnceRunsEachTickOnOneHost(t *testing.T) {
	nightly(t, "it waits for the ticks of a schedule")
	ticks, every := 20, 2*time.Second
	if given := os.Getenv(ticksVariable); given != "" {
		n, err := strconv.Atoi(given)
		noError(t, err)
		ticks, every = n, 1500*time.Millisecond
	}
	for backend, url := range cronBackends {
		t.Run(backend, func(t *testing.T) {
			b := newLab(t)
			b.url = url(t, b)
			b.mayIsolate()
			begin := time.Now().Truncate(every).Add(2 * every)
			var hosts sync.WaitGroup
			for i := range 4 {
				line := fmt.Sprintf(`hostname host%d; while read -r n; do pawl once --every %v tick -- sh -c "echo $n \$PAWL_KEY >> runs" || echo $n $? >> failed & done; wait`, i, every)
				w, p := b.startHost(line)
				ahead := every / 12 * time.Duration(i)
				hosts.Go(func() {
					for n := range ticks {
						time.Sleep(time.Until(begin.Add(time.Duration(n)*every - ahead)))
						fmt.Fprintln(w, n)
					}
					_ = w.Close()
					<-p.done
				})
			}
			hosts.Wait()
			b.judgeTicks(ticks, begin, every)
		})
	}
}

// startHost starts a line of sh on a host of its own.
func (b *lab) startHost(line string) (io.WriteCloser, *process) {
	b.t.Helper()
	var w io.WriteCloser
	p := b.startWith(func(cmd *exec.Cmd) {
		var err error
		w, err = cmd.StdinPipe()
		noError(b.t, err)
	}, "unshare", isolated("sh", "-c", line)...)
	return w, p
}

// judgeTicks fails the test for each tick that did not run once, and for two runs that
// began within half of the period. A start that came a quarter of the period late excuses
// its tick, and the next one.
func (b *lab) judgeTicks(ticks int, begin time.Time, every time.Duration) {
	b.t.Helper()
	if failed := b.read("failed"); failed != "" {
		b.t.Errorf("they failed:\n%s", failed)
	}
	runs, late, slowest := make([]int, ticks), make([]bool, ticks+1), time.Duration(0)
	var began []time.Time
	for line := range strings.Lines(b.read("runs")) {
		var n int
		var key string
		if _, err := fmt.Sscan(line, &n, &key); err != nil {
			b.t.Fatalf("%q: %v", line, err)
		}
		at, err := time.Parse(time.RFC3339Nano, key)
		noError(b.t, err)
		began = append(began, at)
		by := at.Sub(begin.Add(time.Duration(n) * every))
		slowest = max(slowest, by)
		if by >= every/4 {
			late[n], late[n+1] = true, true
		}
		runs[n]++
	}
	slices.SortFunc(began, time.Time.Compare)
	for i := range len(began) - 1 {
		if apart := began[i+1].Sub(began[i]); apart < every/2 {
			b.t.Errorf("two runs began %v after each other, the first at %v", apart, began[i])
		}
	}
	excused, once := 0, 0
	for n, k := range runs {
		switch {
		case k == 1:
			once++
		case late[n]:
			excused++
		default:
			b.t.Errorf("tick %d ran %d times", n, k)
		}
	}
	b.t.Logf("%d ticks ran once, of %d; the last start of one that ran came %v after its tick", once, ticks, slowest)
	if excused > 0 {
		skip.Unproven(b.t, "%d of %d ticks came too late on this machine", excused, ticks)
	}
}
