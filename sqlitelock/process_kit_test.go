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

// The steps that all tests share.
var noError, nightly = basictest.NoError, basictest.Nightly

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// Children are this binary again, with a verb and a file in the environment. They print
// their results.
const (
	childVerb    = "PAWL_SQLITE_TEST_VERB"
	childFile    = "PAWL_SQLITE_TEST_FILE"
	childDeaf    = "PAWL_SQLITE_TEST_DEAF"    // set: without a wakeSocket
	childSeconds = "PAWL_SQLITE_TEST_SECONDS" // for how long
	childClients = "PAWL_SQLITE_TEST_CLIENTS" // of a crowd, in one process
)

// asChild changes how children are started.
var asChild = func(*exec.Cmd) {}

func spawn(tb testing.TB, verb, path string) (*exec.Cmd, *bufio.Scanner) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVerb+"="+verb, childFile+"="+path)
	cmd.Stderr = os.Stderr
	asChild(cmd)
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

func child(verb string) {
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
	d, err := asDriver(OpenFile(ctx, os.Getenv(childFile), nil))
	if err != nil {
		panic(err)
	}
	if os.Getenv(childDeaf) != "" {
		deafen(d)
	}
	heard := make(chan driver.Signal, 100)
	d.Listen(func(s driver.Signal) {
		select {
		case heard <- s:
		default: // a listener must not block, and children that cycle do not listen
		}
	})
	switch verb {
	case "cycle":
		childCycles(d)
	case "count":
		childCounts(d, heard)
	case "wait":
		childWaits(d)
	case "stays":
		childStays(d)
	case "pingpong":
		childPingPong(d, heard)
	}
	if err := d.Close(); err != nil {
		panic(err)
	}
}

// childOpens prints when it opens the file, and then whether it can lock in it.
func childOpens(path string) {
	fmt.Println("opening")
	d, err := asDriver(OpenFile(ctx, path, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = d.Acquire(ctx, mutex("job"))
	fmt.Println(err)
	if err := d.Close(); err != nil {
		panic(err)
	}
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
	bounded, cancel := context.WithTimeout(ctx, hangTime)
	defer cancel()
	for {
		c := queued("name " + strconv.Itoa(rand.N(3)))
		c.TTL, c.QueueTTL = 50*time.Millisecond, 20*time.Millisecond
		g, err := d.Acquire(bounded, c)
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
			panic("granted what is held")
		}
		time.Sleep(c.QueueTTL / 3) // the keep-alive of the root package
	}
	fmt.Printf("%d\n", cputime.Used()-used)
}

// childCounts adds 1 to a number in a file, two hundred times, each time under the lock.
func childCounts(d *lockDriver, heard <-chan driver.Signal) {
	bounded, cancel := context.WithTimeout(ctx, hangTime)
	defer cancel()
	for range 200 {
		c := queued("counter")
		c.TTL, c.QueueTTL = hangTime, hangTime // nothing renews
		waitFor(bounded, d, c, heard)
		b, err := os.ReadFile(os.Getenv(childFile) + ".count")
		if err != nil {
			panic(err)
		}
		n, err := strconv.Atoi(string(b))
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Getenv(childFile)+".count", []byte(strconv.Itoa(n+1)), 0o600); err != nil {
			panic(err)
		}
		if err := d.Release(bounded, lease(c)); err != nil {
			panic(err)
		}
	}
}

// childPingPong gets the name that its partner holds, holds it for a while, releases it,
// and prints when it got it and when it began to release it, again and again.
func childPingPong(d *lockDriver, heard <-chan driver.Signal) {
	for {
		c := queued("ball")
		waitFor(ctx, d, c, heard)
		got := time.Now()
		time.Sleep(30 * time.Millisecond) // longer than the eager polls for a new place
		released := time.Now()
		if err := d.Release(ctx, lease(c)); err != nil {
			panic(err)
		}
		fmt.Printf("%d %d\n", got.UnixNano(), released.UnixNano())
	}
}

// waitFor does simply what the root package does: it claims, waits for a signal, and
// claims again.
func waitFor(ctx context.Context, d *lockDriver, c driver.Claim, heard <-chan driver.Signal) {
	for {
		_, err := d.Acquire(ctx, c)
		if err == nil {
			return
		}
		if !errors.Is(err, driver.ErrHeld) {
			panic(err)
		}
		select {
		case <-heard:
		case <-time.After(time.Second):
		}
	}
}

// handOvers makes two processes hand a name back and forth, and returns the durations:
// from before the release in one until after the acquire in the other.
func handOvers(tb testing.TB, n int) []time.Duration {
	path := file(tb)
	type hold struct{ got, released int64 }
	holds := make(chan hold)
	enough := make(chan struct{})
	defer close(enough)
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
				case <-enough:
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

// byBellAndByPolling runs a benchmark of processes with, and without, a wakeSocket.
func byBellAndByPolling(b *testing.B, f func(b *testing.B)) {
	b.Run("Bell", f)
	b.Run("Polling", func(b *testing.B) {
		b.Setenv(childDeaf, "yes")
		f(b)
	})
}
