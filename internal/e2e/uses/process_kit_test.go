package uses_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// A child is this binary again, with a verb, a URL and a name in the environment. It
// reports on standard output.
const (
	childVerb = "PAWL_USES_TEST_VERB"
	childURL  = "PAWL_USES_TEST_URL"
	childName = "PAWL_USES_TEST_NAME"
	childTTL  = "PAWL_USES_TEST_TTL"
)

// A process is a child that runs until the test kills it.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string // of its output; closed at its end
}

func (b *backend) startProcess(t testing.TB, verb, name string, ttl time.Duration) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVerb+"="+verb, childURL+"="+b.url(t), childName+"="+name, childTTL+"="+ttl.String())
	cmd.Stderr = os.Stderr
	in, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	noError(t, cmd.Start())
	p := &process{t: t, cmd: cmd, in: in, lines: make(chan string, 10)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// expect reads the next line of the process, which has to begin with a word, and returns
// the rest of it.
func (p *process) expect(word string) string {
	p.t.Helper()
	line := receive(p.t, p.lines, "the line of the process that begins with "+word)
	rest, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		p.t.Fatalf("the process printed %q, want %s", line, word)
	}
	return rest
}

// kill ends the process with SIGKILL, and returns the time of the signal.
func (p *process) kill() time.Time {
	at := time.Now()
	_ = p.cmd.Process.Kill()
	for range p.lines { // until its output is closed
	}
	_ = p.cmd.Wait()
	return at
}

// runChild is the main function of a child. It returns only if it fails.
func runChild(verb string) error {
	ttl, err := time.ParseDuration(os.Getenv(childTTL))
	if err != nil {
		return err
	}
	c, err := pawl.Open(background, os.Getenv(childURL), &pawl.Options{TTL: ttl, RequestTimeout: min(ttl/2, time.Minute)})
	if err != nil {
		return err
	}
	name := os.Getenv(childName)
	works := func(ctx context.Context) error {
		fence, _ := pawl.FenceOf(ctx, name)
		fmt.Println("works", fence)
		select {}
	}
	switch verb {
	case "election":
		return c.Election(name).Run(background, works)
	case "once":
		_, err = c.Once(name, pawl.WithAtLeastOnce()).Do(background, "1", works)
		return err
	case "detach":
		lease, err := c.Mutex(name).Lock(background)
		if err != nil {
			return err
		}
		handle, err := lease.Detach(background)
		if err != nil {
			return err
		}
		fmt.Println("handle", string(handle))
		select {} // it does not even close its client
	case "write":
		lease, err := c.Mutex(name).Lock(background)
		if err != nil {
			return err
		}
		fmt.Println("works", lease.Fence())
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println("writes", lease.Fence()) // it does not check its lease
		fmt.Println("lease", lease.Err())
		fmt.Println("release", lease.Release(background))
		select {}
	}
	return fmt.Errorf("unknown verb %q", verb)
}
