package sqlitelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/cputime"
)

var noError, skipIfShort, eventually = basictest.NoError, basictest.SkipIfShort, basictest.Eventually

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// A child is another process of this test binary, with a verb and a file in its
// environment. It prints its results.
const (
	childVerb     = "PAWL_SQLITE_TEST_VERB"
	childFile     = "PAWL_SQLITE_TEST_FILE"
	childNoSocket = "PAWL_SQLITE_TEST_NO_SOCKET" // set: without a wakeSocket
	childSeconds  = "PAWL_SQLITE_TEST_SECONDS"   // the duration of wait and crowd
	childClients  = "PAWL_SQLITE_TEST_CLIENTS"   // the number of clients of one crowd process
)

// prepareChild changes the command of a child before it starts.
var prepareChild = func(*exec.Cmd) {}

func spawn(tb testing.TB, verb, path string) (*exec.Cmd, *bufio.Scanner) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVerb+"="+verb, childFile+"="+path)
	cmd.Stderr = os.Stderr
	prepareChild(cmd)
	in, err := cmd.StdinPipe() // open until the test ends
	if err == nil {
		tb.Cleanup(func() { _ = in.Close() })
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	noError(tb, err)
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

func runChild(verb string) {
	switch verb {
	case "crowd":
		childCrowds(os.Getenv(childFile))
		return
	case "opens", "opens patiently":
		if verb != "opens" {
			companionTimeout = hangTime
		}
		childOpens(os.Getenv(childFile))
		return
	}
	openingCtx, cancel := context.WithTimeout(ctx, hangTime) // without a deadline it waits for others for only 10 s
	d, err := asDriver(OpenFile(openingCtx, os.Getenv(childFile), nil))
	cancel()
	panicOn(err)
	if os.Getenv(childNoSocket) != "" {
		withoutWakeUps(d)
	}
	signals := make(chan driver.Signal, 100)
	d.Listen(func(s driver.Signal) {
		select {
		case signals <- s:
		default: // a listener must not block, and children that cycle do not listen
		}
	})
	switch verb {
	case "cycle":
		childCycles(d)
	case "count":
		childCounts(d, signals)
	case "wait":
		childWaits(d)
	case "stays":
		childStays(d)
	case "pingpong":
		childPingPong(d, signals)
	}
	panicOn(d.Close())
}

// panicOn ends a child after an error.
func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}

// childOpens prints a line before it opens the file, and then the result of one acquire.
func childOpens(path string) {
	fmt.Println("opening")
	d, err := asDriver(OpenFile(ctx, path, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = d.Acquire(ctx, mutex("job"))
	fmt.Println(err)
	panicOn(d.Close())
}

// childStays keeps the file open until its standard input ends.
func childStays(d driver.Driver) {
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = d.Close()
}

// childCycles acquires and releases some names, and prints each fence, until it is
// killed.
func childCycles(d *lockDriver) {
	boundedCtx, cancel := context.WithTimeout(ctx, hangTime)
	defer cancel()
	for {
		c := queued("name " + strconv.Itoa(rand.N(3)))
		c.TTL, c.QueueTTL = 50*time.Millisecond, 20*time.Millisecond
		g, err := d.Acquire(boundedCtx, c)
		switch {
		case err == nil:
			fmt.Printf("%s=%d\n", c.Name, g.Fence)
		case !errors.Is(err, driver.ErrHeld):
			panic(err)
		}
		if rand.N(10) > 0 {
			_ = d.Release(ctx, lease(c)) // it may have expired: there are many children
		}
	}
}

// childWaits waits in a queue for a given time, and prints the CPU time.
func childWaits(d *lockDriver) {
	seconds, _ := strconv.Atoi(os.Getenv(childSeconds))
	c := queued("busy")
	used, end := cputime.Used(), time.Now().Add(time.Duration(seconds)*time.Second)
	for time.Now().Before(end) {
		if _, err := d.Acquire(ctx, c); err == nil {
			panic("a held name was granted")
		}
		time.Sleep(c.QueueTTL / 3) // the keep-alive of the root package
	}
	fmt.Printf("%d\n", cputime.Used()-used)
}

// childCounts adds 1 to a number in a file, two hundred times, each time under the lock.
func childCounts(d *lockDriver, signals <-chan driver.Signal) {
	boundedCtx, cancel := context.WithTimeout(ctx, hangTime)
	defer cancel()
	for range 200 {
		c := queued("counter")
		c.TTL, c.QueueTTL = hangTime, hangTime // this child never renews
		waitFor(boundedCtx, d, c, signals)
		b, err := os.ReadFile(os.Getenv(childFile) + ".count")
		panicOn(err)
		n, err := strconv.Atoi(string(b))
		panicOn(err)
		panicOn(os.WriteFile(os.Getenv(childFile)+".count", []byte(strconv.Itoa(n+1)), 0o600))
		panicOn(d.Release(boundedCtx, lease(c)))
	}
}

// childPingPong repeatedly gets the name that its partner holds, holds it for a while,
// and releases it. It prints the times of the grant and of the start of the release.
func childPingPong(d *lockDriver, signals <-chan driver.Signal) {
	for {
		c := queued("ball")
		waitFor(ctx, d, c, signals)
		got := time.Now()
		time.Sleep(30 * time.Millisecond) // longer than eagerTime
		released := time.Now()
		panicOn(d.Release(ctx, lease(c)))
		fmt.Printf("%d %d\n", got.UnixNano(), released.UnixNano())
	}
}

// waitFor is a simple form of Lock: it claims, waits for a signal, and claims again.
func waitFor(ctx context.Context, d *lockDriver, c driver.Claim, signals <-chan driver.Signal) {
	for {
		_, err := d.Acquire(ctx, c)
		if err == nil {
			return
		}
		if !errors.Is(err, driver.ErrHeld) {
			panic(err)
		}
		select {
		case <-signals:
		case <-time.After(time.Second):
		}
	}
}

// handOvers makes two processes hand a name back and forth. It returns the durations from
// before the release in one process until after the acquire in the other.
func handOvers(tb testing.TB, n int) []time.Duration {
	path := newPath(tb)
	type hold struct{ got, released int64 }
	holds := make(chan hold)
	done := make(chan struct{})
	defer close(done)
	for range 2 {
		_, out := spawn(tb, "pingpong", path)
		go func(out *bufio.Scanner) {
			for out.Scan() {
				var h hold
				if _, err := fmt.Sscan(out.Text(), &h.got, &h.released); err != nil {
					return
				}
				select {
				case holds <- h:
				case <-done:
					return
				}
			}
		}(out)
	}
	var all []hold
	for len(all) < n+10 {
		all = append(all, <-holds)
	}
	slices.SortFunc(all, func(a, b hold) int { return int(a.got - b.got) })
	var took []time.Duration
	for i := range n {
		took = append(took, time.Duration(all[i+1].got-all[i].released))
	}
	return took
}

// withAndWithoutWakeUps runs a benchmark of processes with, and without, a wakeSocket.
func withAndWithoutWakeUps(b *testing.B, f func(b *testing.B)) {
	b.Run("WakeUps", f)
	b.Run("Polling", func(b *testing.B) {
		b.Setenv(childNoSocket, "yes")
		f(b)
	})
}
