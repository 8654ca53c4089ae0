package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/proxy"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// faultKinds returns the faults to inject, or an error for a chosen fault that is not
// possible.
func (p *proof) faultKinds(cmd *cobra.Command, url string) (kinds []string, err error) {
	targets, reason := proxy.Split(url)
	if p.server.Command != "" && len(targets) == 0 {
		return nil, usageError(cmd, fmt.Errorf("--server-cmd needs the address of the server: %s", reason))
	}
	possible := prove.PossibleFaults(len(targets) > 0, p.server)
	if len(p.faults) == 0 {
		if reason != "" {
			p.v.say("no faults of the network: %s", reason)
		}
		return possible, nil
	}
	for _, k := range p.faults {
		switch {
		case slices.Contains(possible, k):
		case strings.HasPrefix(k, "server-"):
			return nil, usageError(cmd, fmt.Errorf("the fault %s needs --server-cmd", k))
		case k == history.FailOver:
			return nil, usageError(cmd, fmt.Errorf("the fault %s needs --failover-cmd", k))
		default:
			return nil, usageError(cmd, fmt.Errorf("the fault %s is not possible: %s", k, reason))
		}
	}
	return p.faults, nil
}

func (p *proof) run(ctx context.Context, cmd *cobra.Command, url string) error {
	kinds, err := p.faultKinds(cmd, url)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if p.seed == 0 {
		p.seed = int(rand.Int32() | 1)
	}
	var namespaces []string
	if p.loc.namespace != "" {
		namespaces, _ = p.loc.namespaces()
	}
	namespaces = append(namespaces, fmt.Sprintf("prove-%08x", rand.Uint32()))
	out := cmp.Or(p.out, "pawl-prove-"+time.Now().Format("20060102-150405")+".html")
	file, err := os.Create(historyPath(out))
	if err != nil {
		return err
	}
	defer file.Close()
	o := prove.Options{
		Config: worker.Config{
			URL: url, Namespace: namespaces, Seed: uint64(p.seed), TTL: p.ttl, Rate: float64(p.rate),
			Clients: 2, Actors: 2, Names: prove.Names(), Planted: p.planted,
		},
		Command: []string{self, workerVerb}, Duration: p.duration, Workers: p.workers,
		Faults: kinds, MaxFaults: max(1, p.workers/4), CheckFences: p.planted != worker.FenceNotChecked, Server: p.server,
		Run:     history.Run{Version: version(), Command: p.repeatCommand(), Lock: "pawl", Ordered: true, Fenced: true, Forgets: p.mayForget},
		History: file, Stderr: p.v.err, Say: p.v.say,
	}
	if isMemory(url) { // processes share no memory, and the clients of one process share a memory by its name
		o.Workers, o.Clients, o.URL = 1, p.workers, "mem:prove"
	}
	insp := &inspector{url: url, namespaces: namespaces, names: o.Names, ttl: o.TTL, serverStarted: p.server.Command != ""}
	o.Begin, o.Leftovers = func(ctx context.Context, run *history.Run) error {
		err := insp.begin(ctx, run)
		if err == nil {
			p.v.say("%s: %v with %d workers; the report will be in %s", run.Backend, o.Duration, o.Workers, out)
		}
		return err
	}, insp.leftClaims
	if p.v.onTerminal {
		o.OnProgress = p.progress
	}
	err = prove.Run(ctx, o)
	if o.OnProgress != nil {
		fmt.Fprint(p.v.err, "\r\x1b[K") // remove the line of the progress
	}
	err = errors.Join(err, file.Close())
	if err != nil && !insp.hasBegun { // the run has not begun
		return errors.Join(err, os.Remove(file.Name()))
	}
	return p.judge(historyPath(out), out)
}

// repeatCommand returns the command that repeats the run, with placeholders for the URL,
// the namespace and the lines for the server, which may be secret.
func (p *proof) repeatCommand() string {
	words := []string{"pawl", "prove", "--for", p.duration.String(), "--workers", strconv.Itoa(p.workers),
		"--ttl", p.ttl.String(), "--rate", strconv.Itoa(p.rate), "--seed", strconv.Itoa(p.seed)}
	if len(p.faults) > 0 {
		words = append(words, "--faults", strings.Join(p.faults, ","))
	}
	if p.planted != "" {
		words = append(words, "--planted", p.planted)
	}
	for _, flag := range []struct {
		given bool
		text  string
	}{
		{p.mayForget, "--forgets"}, {p.server.Command != "", "--server-cmd LINE"},
		{p.server.PID != 0, "--server-pid ID"}, // the server may have another ID by then
		{p.server.FailOver != "", "--failover-cmd LINE"}, {p.loc.namespace != "", "--namespace NAMESPACE"},
	} {
		if flag.given {
			words = append(words, flag.text)
		}
	}
	return strings.Join(append(words, "URL"), " ")
}

// historyPath returns the path of the history of a report.
func historyPath(report string) string {
	return strings.TrimSuffix(report, filepath.Ext(report)) + ".jsonl"
}
