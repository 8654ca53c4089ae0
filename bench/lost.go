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

// A faultContender is a contender of -lost.
type faultContender struct {
	name   string
	open   func(addr string, ttl time.Duration) (claimer, error) // nil for Pawl
	fenced bool                                                  // grants have rising fences
	checks bool                                                  // users write to the register that checks fences
}

var (
	pawlChecked   = faultContender{name: "Pawl, fences checked", fenced: true, checks: true}
	pawlUnchecked = faultContender{name: "Pawl, fences not checked", fenced: true}
)

// faultContenders are the contenders of each engine.
var faultContenders = map[string][]faultContender{
	"redis": {
		pawlChecked, pawlUnchecked,
		{name: "redsync", open: openRedsyncClaimer},
		{name: "bsm/redislock", open: openBsmClaimer},
		{name: "rueidislock", open: openRueidisClaimer},
	},
	"postgres": {
		pawlChecked, pawlUnchecked,
		{name: "pg_advisory_lock", open: openSessionClaimer("pgx", postgresURL, postgresSession)},
		{name: "goose, table", open: openGooseClaimer("pgx", postgresURL, lock.NewPostgresTableLocker)},
	},
	"mysql": {
		pawlChecked, pawlUnchecked,
		{name: "GET_LOCK", open: openSessionClaimer("mysql", mysqlDSN, mysqlSession)},
		{name: "goose, table", open: openGooseClaimer("mysql", gooseDSN, lock.NewMySQLTableLocker)},
	},
	"etcd": {
		pawlChecked, pawlUnchecked,
		{name: "concurrency.Mutex, revision checked", open: openEtcdClaimer, fenced: true, checks: true},
		{name: "concurrency.Mutex", open: openEtcdClaimer, fenced: true},
	},
}

// workerURLs has, by engine, the function that returns the workers' URL for an address.
var workerURLs = map[string]func(addr string) string{
	"redis":    func(addr string) string { return "redis://" + addr },
	"postgres": postgresURL,
	"mysql":    func(addr string) string { return "mysql://bench@" + addr + "/bench" },
	"etcd":     func(addr string) string { return "etcd://" + addr },
}

// faultKinds are the kinds of faults of a run.
var faultKinds = []string{
	history.Stop, history.Kill, history.Crash, history.Cut, history.Delay, history.Swallow, history.Silence,
	history.ServerStop, history.ServerKill,
}

const (
	workerCount   = 6
	sectionLength = 200 * time.Millisecond // so long that the names are nearly always held
)

// lossOptions are the flags of -lost.
type lossOptions struct {
	duration, ttl time.Duration
	seed          uint64
	only          string
	json          bool
	keep          string // the folder for the histories; empty for none
}

// countLosses runs one contender after the other, and prints their losses.
func countLosses(e engine, o lossOptions) error {
	if faultContenders[e.name] == nil {
		return fmt.Errorf("-lost has no contender on %s", e.name)
	}
	fmt.Printf("%s, %s, %d cores, %s, %v each, TTL %v, seed %d, load %.1f\n", e.name, runtime.Version(), runtime.NumCPU(),
		runtime.GOOS+"/"+runtime.GOARCH, o.duration, o.ttl, o.seed, loadAverage())
	var all []losses
	for _, c := range faultContenders[e.name] {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ";"), c.name) {
			continue
		}
		l, err := c.run(e, o)
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
		printLossTable(os.Stdout, e.name, all)
	}
	return nil
}

// run runs a contender, and returns its losses.
func (c faultContender) run(e engine, o lossOptions) (l losses, err error) {
	s, err := prepareServer(e)
	if err != nil {
		return l, err
	}
	defer s.remove()
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	if err := errors.Join(os.Setenv(contenderVariable, c.name), os.Setenv(engineVariable, e.name)); err != nil {
		return l, err
	}
	folder := o.keep
	if folder == "" {
		folder = s.dir
	}
	file, err := os.Create(filepath.Join(folder, e.name+"-"+strings.Map(fileNameRune, c.name)+".jsonl"))
	if err != nil {
		return l, err
	}
	defer file.Close()
	log, err := os.Create(strings.TrimSuffix(file.Name(), "jsonl") + "log") // the output of workers and server
	if err != nil {
		return l, err
	}
	defer log.Close()
	err = prove.Run(context.Background(), prove.Options{
		Config: worker.Config{
			URL: workerURLs[e.name](s.addr), Namespace: []string{"lost"}, Seed: o.seed, TTL: o.ttl,
			Clients: 2, Actors: 2, Names: contestedNames, HeedsLoss: true, Section: sectionLength,
		},
		Command: []string{self}, Duration: o.duration, Workers: workerCount,
		Faults: faultKinds, MaxFaults: workerCount / 3, CheckFences: c.checks, Server: prove.ServerOptions{Command: s.command},
		Run: history.Run{Lock: c.lockName(), Fenced: c.fenced}, History: file, Stderr: log,
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

// lockName returns the lock's name in the history. Package check expects more of "pawl".
func (c faultContender) lockName() string {
	if c.open == nil {
		return "pawl"
	}
	return c.name
}

func fileNameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '-'
}
