package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/pawl-go/pawl/cmd/pawl/prove"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// A loser is a contender of -lost, which counts losses under the faults of pawl prove.
type loser struct {
	name   string
	open   func(addr string, ttl time.Duration) (locker, error) // nil for Pawl
	fenced bool                                                 // each grant has a greater fence
	checks bool                                                 // its users write to a register that checks fences
}

var (
	pawlChecked   = loser{name: "Pawl, fences checked", fenced: true, checks: true}
	pawlUnchecked = loser{name: "Pawl, fences not checked", fenced: true}
)

// losers are the contenders of each engine.
var losers = map[string][]loser{
	"redis": {
		pawlChecked, pawlUnchecked,
		{name: "redsync", open: openLostRedsync},
		{name: "bsm/redislock", open: openLostBsm},
		{name: "rueidislock", open: openLostRueidis},
	},
	"postgres": {
		pawlChecked, pawlUnchecked,
		{name: "pg_advisory_lock", open: openLostSession("pgx", postgresURL, postgresSession)},
		{name: "goose, table", open: openLostGoose("pgx", postgresURL, lock.NewPostgresTableLocker)},
	},
	"mysql": {
		pawlChecked, pawlUnchecked,
		{name: "GET_LOCK", open: openLostSession("mysql", mysqlDSN, mysqlSession)},
		{name: "goose, table", open: openLostGoose("mysql", gooseDSN, lock.NewMySQLTableLocker)},
	},
	"etcd": {
		pawlChecked, pawlUnchecked,
		{name: "concurrency.Mutex, revision checked", open: openLostEtcd, fenced: true, checks: true},
		{name: "concurrency.Mutex", open: openLostEtcd, fenced: true},
	},
}

// urls has, for each engine, the function that returns the workers' URL for an address.
var urls = map[string]func(addr string) string{
	"redis":    func(addr string) string { return "redis://" + addr },
	"postgres": postgresURL,
	"mysql":    func(addr string) string { return "mysql://bench@" + addr + "/bench" },
	"etcd":     func(addr string) string { return "etcd://" + addr },
}

// lostFaults are the faults of the workers, of their network and of the server.
var lostFaults = []string{
	history.Stop, history.Kill, history.Crash, history.Cut, history.Delay, history.Swallow, history.Silence,
	history.ServerStop, history.ServerKill,
}

const (
	lostWorkers = 6
	lostSection = 200 * time.Millisecond // most sections are shorter, so the names are nearly always held
)

// lostOptions are the flags of the mode.
type lostOptions struct {
	long, ttl time.Duration
	seed      uint64
	only      string
	json      bool
	keep      string // the folder that keeps the histories; empty: no folder
}

// lose runs one contender after the other, and prints what each of them lost.
func lose(e engine, o lostOptions) error {
	if losers[e.name] == nil {
		return fmt.Errorf("no contender of -lost is on %s", e.name)
	}
	fmt.Printf("%s, %s, %d cores, %s, %v each, TTL %v, seed %d, load %.1f\n", e.name, runtime.Version(), runtime.NumCPU(),
		runtime.GOOS+"/"+runtime.GOARCH, o.long, o.ttl, o.seed, loadAverage())
	var all []losses
	for _, c := range losers[e.name] {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ";"), c.name) {
			continue
		}
		l, err := c.lose(e, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %d sections, load %.1f, faults %v%s\n", c.name, l.Sections, loadAverage(), l.Faults, l.failed)
		if o.json {
			line, err := json.Marshal(l)
			if err != nil {
				return err
			}
			fmt.Println(string(line))
		}
		all = append(all, l)
	}
	if !o.json {
		lossTable(os.Stdout, e.name, all)
	}
	return nil
}

// lose runs a contender.
func (c loser) lose(e engine, o lostOptions) (l losses, err error) {
	s, err := prepare(e)
	if err != nil {
		return l, err
	}
	defer s.remove()
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	if err := errors.Join(os.Setenv(workerOf, c.name), os.Setenv(workerEngine, e.name)); err != nil {
		return l, err
	}
	folder := o.keep
	if folder == "" {
		folder = s.dir
	}
	file, err := os.Create(filepath.Join(folder, e.name+"-"+strings.Map(plainRune, c.name)+".jsonl"))
	if err != nil {
		return l, err
	}
	defer file.Close()
	said, err := os.Create(strings.TrimSuffix(file.Name(), "jsonl") + "log") // what workers and server print
	if err != nil {
		return l, err
	}
	defer said.Close()
	err = prove.Run(context.Background(), prove.Options{
		Config: worker.Config{
			URL: urls[e.name](s.addr), Namespace: []string{"lost"}, Seed: o.seed, TTL: o.ttl,
			Clients: 2, Actors: 2, Names: names, HeedsLoss: true, Section: lostSection,
		},
		Command: []string{self}, Duration: o.long, Workers: lostWorkers,
		Faults: lostFaults, MaxFaults: lostWorkers / 3, CheckFences: c.checks, Server: prove.ServerOptions{Command: s.command},
		Run: history.Run{Lock: c.lock(), Fenced: c.fenced}, History: file, Stderr: said,
		Say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
	if err != nil {
		return l, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return l, err
	}
	h, err := history.Read(file)
	if err != nil {
		return l, err
	}
	return c.lossesOf(h), nil
}

// lock names the lock in the history. A reader of the history expects more of Pawl.
func (c loser) lock() string {
	if c.open == nil {
		return "pawl"
	}
	return c.name
}

func plainRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '-'
}
