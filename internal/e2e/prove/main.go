//go:build unix

// Command prove runs "pawl prove" on servers that it starts itself: on all backends, or
// with the planted bugs. `make prove` runs it.
//
//	go run ./internal/e2e/prove [-planted all|NAME]
//	go run ./internal/e2e/prove -engine all|NAME[,NAME...] [-for 10m]
//
// It prints a row of a Markdown table for each run, and keeps the report, the history and
// the command's output in a folder. It fails if a lock did not hold, if a run proves
// nothing, or if a planted bug is not found within a minute.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A harness is one call of this program.
type harness struct {
	pawl     string // the command
	out      string // the folder of the reports
	duration time.Duration
	seed     uint64 // 0 for a random seed of each run
	args     []string
}

func main() {
	engine := flag.String("engine", "", "the `NAMES` of engines, separated by commas, or all: "+strings.Join(engineNames(), ","))
	planted := flag.String("planted", "", "the `NAME` of a planted bug, or all (default all, without -engine)")
	length := flag.Duration("for", 10*time.Minute, "the duration of the run on an engine")
	seed := flag.Uint64("seed", 0, "the `SEED` of the faults and the work (default random)")
	out := flag.String("out", "bin/prove", "the `FOLDER` of the reports")
	pawl := flag.String("pawl", "", "the `FILE` of the command (default: it is built)")
	pokeAddr := flag.String("poke", "", "only ask the harness at this `ADDRESS` for a fault; its --failover-cmd uses this")
	flag.Parse()
	if *pokeAddr != "" {
		exitIf(poke(*pokeAddr))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	h := &harness{pawl: *pawl, out: *out, duration: *length, seed: *seed, args: flag.Args()}
	err := h.run(ctx, *engine, *planted)
	stop()
	exitIf(err)
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func (h *harness) run(ctx context.Context, engine, planted string) error {
	if err := os.MkdirAll(h.out, 0o750); err != nil {
		return err
	}
	if h.pawl == "" {
		dir, err := os.MkdirTemp("", "pawl-prove-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if h.pawl, err = build(ctx, dir); err != nil {
			return err
		}
	}
	if engine == "" || planted != "" {
		return h.runPlants(ctx, planted)
	}
	return h.runEngines(ctx, engine)
}

// build builds the command, so that all runs use the same one even if the sources change.
func build(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "pawl")
	c := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/pawl-go/pawl/cmd/pawl")
	if output, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c, err, output)
	}
	return path, nil
}

// runEngines runs the command on each of the engines.
func (h *harness) runEngines(ctx context.Context, names string) (failed error) {
	chosen := strings.Split(names, ",")
	if names == "all" {
		chosen = engineNames()
	}
	if err := h.print(engineHead); err != nil {
		return err
	}
	for _, name := range chosen {
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		if err := h.runEngine(ctx, name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return failed
}

// runEngine runs the command on one engine, and prints a row.
func (h *harness) runEngine(ctx context.Context, name string) (err error) {
	e, known := allEngines[name]
	if !known {
		return fmt.Errorf("no such engine; the engines are %s", strings.Join(engineNames(), ", "))
	}
	l := &lab{}
	defer l.close(&err)
	s := e.start(l)
	args := append([]string{"--for", h.duration.String()}, h.args...)
	if h.seed != 0 {
		args = append(args, "--seed", fmt.Sprint(h.seed))
	}
	r, err := h.prove(ctx, name, append(append(args, l.flags(s)...), s.url))
	if err != nil {
		return err
	}
	return errors.Join(h.print(r.row(e.title)), r.failure())
}

// print prints lines of a table, and adds them to a file beside the reports.
func (h *harness) print(lines string) error {
	if _, err := fmt.Fprintln(os.Stdout, lines); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.out, "table.md"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, lines)
	return errors.Join(err, f.Close())
}
