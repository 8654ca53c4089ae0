package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// workerVerb is the verb of a worker process. The help does not show it.
const workerVerb = "prove-work"

type proof struct {
	v         *output
	loc       *location
	duration  time.Duration
	ttl       time.Duration
	workers   int
	rate      int
	seed      int
	faults    []string
	server    prove.ServerOptions
	mayForget bool // the server may lose its last writes
	planted   string
	out       string // the path of the report
	check     string // the path of a history
}

func newProve(v *output, loc *location) *cobra.Command {
	p := &proof{v: v, loc: loc, duration: 10 * time.Minute, ttl: 2 * time.Second, workers: 8, rate: 100}
	plants, bugs := worker.Plants()
	var plantLines strings.Builder
	for _, name := range plants {
		fmt.Fprintf(&plantLines, "  %-26s %s\n", name, bugs[name])
	}
	cmd := &cobra.Command{
		Use:   "prove [flags] [URL]",
		Short: "Prove that the locks hold on your database when things go wrong",
		Long: `Prove starts worker processes on this host that take locks on your database:
mutexes, read/write locks, a semaphore, several at once, an election. A holder
counts in a register, which prove itself keeps, and which refuses a fence that
is smaller than one before. Prove disturbs the workers, their network and, with
--server-cmd, the server. It writes down what each worker did and believed. Then
it checks that file, with code that shares nothing with the locks.

It fails if two workers believed in one lock at one instant, if a fence fell, if
an update was lost, if a holder did not see its loss, if a waiter was passed by
or forgotten, or if a lease was left behind. It also fails if the run proves
nothing: because a fault never happened, or no lease was lost.

The faults are:
  stop           a worker stands still for longer than its leases last
  kill, crash    a worker is killed; it ends itself while it holds a lock
  overstay       a holder works on after its lease was lost
  cut            the connections of a worker are reset
  delay          all that it sends and gets is late
  reorder        one of its connections is late, the others are not
  swallow        the replies to it are lost
  silence        its connections stay, but nothing passes
  server-stop    the server stands still for a while
  server-kill    the server is killed, and started again
  server-restart the server is ended, and started again
  failover       --failover-cmd is run

It is safe on a database that is in use. It locks eight names of a namespace of
its own only, and claims no more than --rate a second; that is load. After that
the database remembers the fences of these names, as it does of any name: for
about a day. With mem: all clients are in one worker, and share its memory.

--out gets a report: one HTML file that needs no network. Beside it is the
history, in lines of JSON. --check FILE checks such a history again.

--planted NAME plants a bug, to show that prove finds one like it:
` + plantLines.String() + `
The exit code is 0 if the locks held, 78 if they did not, 1 if the run proves
nothing, 64 for wrong usage, or 69 if the database is unavailable.`,
		Example: `  pawl prove redis://localhost
  pawl prove --for 1m --planted release-without-token redis://localhost
  pawl prove redis://localhost:7000 --server-cmd \
    'redis-server --port 7000 --appendonly yes --appendfsync always'
  pawl prove --check pawl-prove.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(cmd, fmt.Errorf("more than one URL: %d", len(args)))
			}
			return p.validate(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.check != "" { // judge a history from a file
				return p.judge(p.check, cmp.Or(p.out, strings.TrimSuffix(p.check, filepath.Ext(p.check))+".html"))
			}
			url, err := p.url(cmd, args)
			if err != nil {
				return err
			}
			ctx, stop := p.v.interruptible(cmd)
			defer stop()
			return p.run(ctx, cmd, url)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*seconds)(&p.duration), "for", "how long to run, 10s to 24h; below 1m a run often proves nothing")
	flags.Var((*number)(&p.workers), "workers", "`N`, how many processes lock, 2 to 64")
	flags.Var((*seconds)(&p.ttl), "ttl", "how long a lease lasts without a renewal; faults last as long, so with a short TTL there are more of them")
	flags.Var((*number)(&p.rate), "rate", "at most `N` claims a second by all workers; 0 for no limit")
	flags.Var((*number)(&p.seed), "seed", "the number `N` from which faults and work are drawn (default random)")
	flags.StringSliceVar(&p.faults, "faults", nil, "the `KINDS` of faults, separated by commas (default all that are possible): "+strings.Join(history.Kinds(), ", "))
	flags.StringVar(&p.server.Command, "server-cmd", "", "start the server with this `LINE` for "+shellName+"; then the faults of the server are possible")
	flags.Var((*number)(&p.server.PID), "server-pid", "let the server with this process `ID` stand still now and then (server-stop)")
	flags.StringVar(&p.server.FailOver, "failover-cmd", "", "fail the server over with this `LINE` for "+shellName)
	flags.BoolVar(&p.mayForget, "forgets", false, "the server may lose its last writes when it is killed: two holders are no violation then, but fences must rise")
	flags.StringVar(&p.planted, "planted", "", "plant the bug of this `NAME`")
	flags.StringVar(&p.out, "out", "", "the `FILE` of the report (default pawl-prove-DATE-TIME.html); the history is beside it, .jsonl")
	flags.StringVar(&p.check, "check", "", "check the history in this `FILE` again, and write its report, over an older one if it is there")
	completeFiles(cmd, "out", "check")
	must(cmd.RegisterFlagCompletionFunc("planted", cobra.FixedCompletions(plants, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("faults", cobra.FixedCompletions(history.Kinds(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// newProveWorker returns the hidden command of a worker process.
func newProveWorker() *cobra.Command {
	return &cobra.Command{
		Use:    workerVerb,
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := worker.Run(os.Stdin, os.Stdout, worker.OpenPawl); code != 0 {
				return &exit{code: code}
			}
			return nil
		},
	}
}

// validate returns an error for wrong flags, before the first request.
func (p *proof) validate(cmd *cobra.Command, args []string) error {
	plants, _ := worker.Plants()
	problem := ""
	switch {
	case p.check != "" && len(args) > 0:
		problem = "--check and URL are mutually exclusive"
	case p.check != "":
	case runtime.GOOS == "windows":
		problem = "prove stops and continues processes, which Windows cannot do; run it on Linux or macOS"
	case p.duration < 10*time.Second || p.duration > 24*time.Hour:
		problem = fmt.Sprintf("--for is %v; allowed: 10s to 24h", p.duration)
	case p.workers < 2 || p.workers > 64:
		problem = fmt.Sprintf("--workers is %d; allowed: 2 to 64", p.workers)
	case p.ttl < 200*time.Millisecond || p.ttl > time.Minute:
		problem = fmt.Sprintf("--ttl is %v; allowed: 200ms to 1m", p.ttl)
	case p.rate < 0:
		problem = fmt.Sprintf("--rate is %d; allowed: 0 or more", p.rate)
	case p.seed < 0:
		problem = fmt.Sprintf("--seed is %d; allowed: 0 or more", p.seed)
	case p.planted != "" && !slices.Contains(plants, p.planted):
		problem = fmt.Sprintf("--planted is %q; allowed: %s", p.planted, wordList(plants))
	case p.server.Command != "" && p.server.PID != 0:
		problem = "--server-cmd and --server-pid are mutually exclusive"
	case p.out != "" && !isFolder(filepath.Dir(p.out)):
		problem = fmt.Sprintf("--out is %q; there is no folder %q", p.out, filepath.Dir(p.out))
	case p.server.PID < 0:
		problem = fmt.Sprintf("--server-pid is %d; allowed: the ID of a process", p.server.PID)
	}
	for _, k := range p.faults {
		if !slices.Contains(history.Kinds(), k) {
			problem = fmt.Sprintf("--faults has %q; allowed: %s", k, wordList(history.Kinds()))
		}
	}
	if problem != "" {
		return usageError(cmd, errors.New(problem))
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// url returns the URL of the database.
func (p *proof) url(cmd *cobra.Command, args []string) (string, error) {
	var url string
	var err error
	switch {
	case len(args) == 0:
		url, _, err = p.loc.findURL(cmd)
	case cmd.Flags().Changed("url"):
		err = usageError(cmd, errors.New("--url and URL are mutually exclusive"))
	case args[0] == "":
		err = usageError(cmd, errors.New("URL is empty"))
	default:
		url = args[0]
		err = usageError(cmd, checkScheme(url))
	}
	if err != nil {
		return "", err
	}
	if scheme := worker.PlantNeeds(p.planted); scheme != "" && !strings.HasPrefix(url, scheme+":") {
		return "", usageError(cmd, fmt.Errorf("--planted %s is for %s URLs only", p.planted, scheme))
	}
	return url, nil
}
