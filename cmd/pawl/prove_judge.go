package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/report"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// judge checks a history, writes its report, and prints the result.
func (p *proof) judge(file, out string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	h, err := history.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	v := check.Run(h)
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := errors.Join(report.Write(f, h, v), f.Close()); err != nil {
		return err
	}
	return p.sayVerdict(v, out, file)
}

// sayVerdict prints a verdict, and returns it as an exit code.
func (p *proof) sayVerdict(v *check.Verdict, out, file string) error {
	n := v.Numbers
	faults := 0
	for _, k := range n.FaultsByKind {
		faults += k
	}
	if _, err := fmt.Fprintf(p.v.out, "%d leases, %d lost, %d taken over, %d stale writes refused, %d faults\n", n.Leases, n.Lost, n.TakenOver, n.Stale, faults); err != nil {
		return err
	}
	if p.planted != "" {
		_, bugs := worker.Plants()
		fmt.Fprintf(p.v.out, "planted: %s: %s\n", p.planted, bugs[p.planted])
	}
	p.sayViolations(v)
	if len(v.Violations) == 0 {
		for _, b := range v.Weaknesses {
			fmt.Fprintf(p.v.out, "proves nothing: %s\n", b)
		}
	}
	if _, err := fmt.Fprintf(p.v.out, "report: %s\nhistory: %s\n", out, file); err != nil {
		return err
	}
	switch {
	case len(v.Violations) > 0:
		return &exit{code: exitUnsound, err: errors.New("the locks did not hold; the report shows where")}
	case len(v.Weaknesses) > 0:
		return &exit{code: exitOther, err: errors.New("the run proves nothing, for the reasons above; give it more time, or other faults")}
	}
	_, err := fmt.Fprintln(p.v.out, "the locks held")
	return err
}

// sayViolations prints the first violation of each rule, with its number in the report.
// The rule about a whole history comes last, because its text is the longest.
func (p *proof) sayViolations(v *check.Verdict) {
	shown := map[string]bool{}
	for _, last := range []bool{false, true} {
		for i, b := range v.Violations {
			if shown[b.Rule] || (b.Rule == check.Linearizable) != last {
				continue
			}
			shown[b.Rule] = true
			fmt.Fprintf(p.v.out, "violation %d: %s: %s", i+1, b.Rule, b.Text)
			if more := v.Count[b.Rule] - 1; more > 0 {
				fmt.Fprintf(p.v.out, " And %d more.", more)
			}
			fmt.Fprintln(p.v.out)
		}
	}
}

// progress shows the progress of the run, on a terminal.
func (p *proof) progress(g prove.Progress) {
	phase := "waiting for the workers to end"
	if g.Phase != history.Drain {
		phase = fmt.Sprintf("%s %v of %v", g.Phase, g.Elapsed.Round(time.Second), g.Length)
	}
	fmt.Fprintf(p.v.err, "\r\x1b[K%s: %d leases, %d faults", phase, g.Leases, g.Faults)
}
