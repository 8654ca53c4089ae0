package sqlitelock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Children are this binary again, with a verb and a file in the environment. They speak on standard output.
const (
	childVerb = "PAWL_SQLITE_TEST_VERB"
	childFile = "PAWL_SQLITE_TEST_FILE"
	childDeaf = "PAWL_SQLITE_TEST_DEAF" // set: without a doorbell
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
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

func child(verb string) {
	switch verb {
	case "crowd":
		childCrowds(os.Getenv(childFile))
		return
	case "opens":
		childOpens(os.Getenv(childFile))
		return
	}
	d, err := Open(ctx, os.Getenv(childFile), nil)
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
		default: // a listener must not block, and those who cycle do not listen
		}
	})
	switch verb {
	case "cycle":
		childCycles(d)
	case "count":
		childCounts(d, heard)
	case "wait":
		childWaits(d)
	case "hammer":
		childHammers(d)
	case "stays":
		childStays(d)
	case "pingpong":
		childPingPong(d, heard)
	}
	if err := d.Close(); err != nil {
		panic(err)
	}
}

// childCycles acquires and releases names of a few, and prints each fence that it was granted, until it is killed.
func childCycles(d *Driver) {
	for {
		c := queued("name " + strconv.Itoa(rand.N(3)))
		c.TTL, c.QueueTTL = 50*time.Millisecond, 20*time.Millisecond
		g, err := d.Acquire(ctx, c)
		switch {
		case err == nil:
			fmt.Printf("%s=%d\n", c.Name, g.Fence)
		case !errors.Is(err, driver.ErrHeld):
			panic(err)
		}
		if rand.N(10) > 0 {
			_ = d.Release(ctx, lease(c)) // it may have expired, for the other children are many
		}
	}
}

// TestAProcessMayBeKilledAtAnyMoment kills writers again and again: the file stays whole, its entries can be
// read, and the fences that were granted only ever rose.
func TestAProcessMayBeKilledAtAnyMoment(t *testing.T) {
	path := file(t)
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	highest := map[string]uint64{} // of all that was printed; a child's last lines may stay in its pipe
	for range rounds {
		var cmds []*exec.Cmd
		var outs []*bufio.Scanner
		for range 3 {
			cmd, out := spawn(t, "cycle", path)
			cmds, outs = append(cmds, cmd), append(outs, out)
		}
		if !outs[0].Scan() {
			t.Fatal("a child said nothing")
		}
		time.Sleep(rand.N(20 * time.Millisecond)) // the moment is what is tried, not what is waited for
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
		}
		for i, out := range outs {
			seen := map[string]uint64{}
			for more := i > 0 || true; more; more = out.Scan() {
				name, number, whole := strings.Cut(out.Text(), "=")
				fence, err := strconv.ParseUint(number, 10, 64)
				if !whole || err != nil || fence < 1<<40 {
					continue // nothing yet, or a line that the kill cut
				}
				if fence <= seen[name] {
					t.Fatalf("%s: fence %d came after %d", name, fence, seen[name])
				}
				seen[name] = fence
			}
			for name, fence := range seen {
				highest[name] = max(highest[name], fence)
			}
			_ = cmds[i].Wait()
		}

		d, err := Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := d.Diagnose(ctx); err != nil || len(found) > 0 {
			t.Fatalf("after a kill: %v, %v", found, err)
		}
		for e, err := range d.List(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Fence < highest[e.Name] {
				t.Fatalf("%s: the last fence fell from %d to %d", e.Name, highest[e.Name], e.Fence)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// childCounts adds 1 to a number in a file, two hundred times, each time under the lock.
func childCounts(d *Driver, heard <-chan driver.Signal) {
	for range 200 {
		c := queued("counter")
		waitFor(d, c, heard)
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
		if err := d.Release(ctx, lease(c)); err != nil {
			panic(err)
		}
	}
}

// waitFor is a simple version of what the root package does: it asks, waits for a signal, and asks again.
func waitFor(d *Driver, c driver.Claim, heard <-chan driver.Signal) {
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

func TestProcessesExcludeEachOther(t *testing.T) {
	path := file(t)
	if err := os.WriteFile(path+".count", []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var cmds []*exec.Cmd
	for range 3 {
		cmd, _ := spawn(t, "count", path)
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(path + ".count"); err != nil || string(b) != "600" {
		t.Fatalf("600 additions made %s (%v)", b, err)
	}
}

// childOpens says when it opens the file, and then whether it can lock in it.
func childOpens(path string) {
	fmt.Println("opening")
	d, err := Open(ctx, path, nil)
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
