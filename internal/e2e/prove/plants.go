//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
	"github.com/pawl-go/pawl/internal/redistest"
)

// maxPlantTime is the time within which a planted bug must break a rule.
const maxPlantTime = time.Minute

// runPlants runs the command with planted bugs, on Redis or on the servers they need.
func (h *harness) runPlants(ctx context.Context, names string) (failed error) {
	all, _ := worker.Plants()
	chosen := all
	if names != "" && names != "all" {
		chosen = strings.Split(names, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(all, name) {
			return fmt.Errorf("%s is no planted bug; the bugs are %s", name, strings.Join(all, ", "))
		}
	}
	if err := h.print("| planted bug | found after | by the rule | and by |\n|---|---|---|---|"); err != nil {
		return err
	}
	for _, name := range chosen {
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		if err := h.runPlant(ctx, name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return failed
}

// runPlant runs the command for a third of maxPlantTime. If that run does not find the
// bug, it runs the command for all of maxPlantTime.
func (h *harness) runPlant(ctx context.Context, name string) (err error) {
	l := &lab{}
	defer l.close(&err)
	url := plantServer(l, worker.PlantNeeds(name))
	var r *result
	for _, d := range []time.Duration{maxPlantTime / 3, maxPlantTime} {
		args := append([]string{"--for", d.String(), "--planted", name}, h.args...)
		if h.seed != 0 {
			args = append(args, "--seed", fmt.Sprint(h.seed))
		}
		if r, err = h.prove(ctx, "planted-"+name, append(args, url)); err != nil {
			return err
		}
		if len(r.verdict.Violations) > 0 {
			break
		}
	}
	if len(r.verdict.Violations) == 0 {
		return errors.Join(h.print("| "+name+" | not found | | |"), fmt.Errorf("not found within %v (%s)", maxPlantTime, r.report))
	}
	rule, after := r.firstBroken()
	var others []string
	for other := range r.verdict.Count {
		if other != rule {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	err = h.print(fmt.Sprintf("| %s | %.1f s | %s | %s |", name, after.Seconds(), rule, strings.Join(others, ", ")))
	if after > maxPlantTime {
		err = errors.Join(err, fmt.Errorf("found only after %v (%s)", after.Round(time.Second), r.report))
	}
	return err
}

// firstBroken returns the rule of the violation that ended first, and its end.
func (r *result) firstBroken() (rule string, after time.Duration) {
	first := slices.MinFunc(r.verdict.Violations, func(a, b check.Violation) int { return cmp.Compare(a.To, b.To) })
	return first.Rule, time.Duration(first.To)
}

// plantServer starts a server for a planted bug, without faults, and returns its URL.
func plantServer(l *lab, scheme string) string {
	if scheme == "redlock" {
		url, _ := redlock(l)
		return url
	}
	return "redis://" + redistest.Start(l, durable...).Addr
}
