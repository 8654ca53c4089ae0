//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A result is the outcome of a run.
type result struct {
	run      history.Run
	verdict  *check.Verdict
	took     time.Duration
	exitCode int
	report   string
}

// prove runs the command, and reads its history.
func (h *harness) prove(ctx context.Context, name string, args []string) (*result, error) {
	at := filepath.Join(h.out, name+"-"+time.Now().Format("20060102-150405"))
	log, err := os.Create(at + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := exec.CommandContext(ctx, h.pawl, append([]string{"prove", "--out", at + ".html"}, args...)...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal must reach only the harness
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 3 * time.Minute
	_, _ = fmt.Fprintln(log, "$ pawl "+strings.Join(c.Args[1:], " "))
	begun := time.Now()
	err = c.Run()
	r := &result{took: time.Since(begun), report: at + ".html"}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return nil, err
	}
	r.exitCode = c.ProcessState.ExitCode()
	if err := r.read(at + ".jsonl"); err != nil {
		output, _ := os.ReadFile(at + ".log")
		return nil, fmt.Errorf("exit code %d, and %w\n%s", r.exitCode, err, output)
	}
	return r, nil
}

func (r *result) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return err
	}
	r.run, r.verdict = h.Run, check.Run(h)
	return nil
}

const engineHead = "| engine | leases | faults | lost | taken over | stale writes refused | violations | proves nothing because | time | seed |\n" +
	"|---|---|---|---|---|---|---|---|---|---|"

// row returns the row of an engine in the table.
func (r *result) row(engine string) string {
	n := r.verdict.Numbers
	var faults []string
	for _, kind := range r.run.Faults {
		faults = append(faults, fmt.Sprintf("%s %d", kind, n.FaultsByKind[kind]))
	}
	return fmt.Sprintf("| %s | %d | %s | %d | %d | %d | %s | %s | %v | %d |", engine, n.Leases, strings.Join(faults, ", "),
		n.Lost, n.TakenOver, n.Stale, r.violations(), strings.Join(r.verdict.Weaknesses, " "), r.took.Round(time.Second), r.run.Seed)
}

// violations returns the number of violations of each broken rule.
func (r *result) violations() string {
	if len(r.verdict.Count) == 0 {
		return "0"
	}
	var all []string
	for _, rule := range slices.Sorted(maps.Keys(r.verdict.Count)) {
		all = append(all, fmt.Sprintf("%s %d", rule, r.verdict.Count[rule]))
	}
	return strings.Join(all, ", ")
}

// failure returns the reason why a run on an engine proves nothing, or nil.
func (r *result) failure() error {
	switch {
	case len(r.verdict.Violations) > 0:
		return fmt.Errorf("%s: %s (%s)", r.verdict.Violations[0].Rule, r.verdict.Violations[0].Text, r.report)
	case len(r.verdict.Weaknesses) > 0:
		return fmt.Errorf("the run proves nothing: %s (%s)", r.verdict.Weaknesses[0], r.report)
	case r.exitCode != 0:
		return fmt.Errorf("exit code %d (%s)", r.exitCode, r.report)
	}
	return nil
}
