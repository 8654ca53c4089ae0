// Command bench compares Pawl on one engine with its peers and the floor, a minimal lock.
// It runs one scenario after the other. The contenders take turns, each on a new server,
// and the figures are the medians of the rounds. Ratios mean more than absolute numbers.
//
//	go run . [-engine redis] [-scenario own] [-only pawl,raw] [-svg chart.svg]
//	go run . -growth [-engine redis] [-most 1000]
//	go run . -sessions -engine postgres
//	go run . -lost [-engine redis] [-for 60s] [-ttl 2s] [-seed 1]
//
// It needs the engine's server. It has its own module, so that no user's go.sum has the
// peers.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// measurement is a scenario with its results.
type measurement struct {
	scenario scenario
	results  []result
}

func main() {
	runHolderProcess()
	runWorkerProcess()
	engineName := flag.String("engine", "redis", "one of "+strings.Join(engineNames(), ", "))
	scenarioPrefixes := flag.String("scenario", "", "run only scenarios whose name begins with one of these, separated by commas; default all except the ones that -list marks")
	onlyContenders := flag.String("only", "", "contenders, separated by commas; default all")
	rounds := flag.Int("rounds", 0, "the number of turns of each contender, unless the scenario has its own; default 5 on Redis, otherwise 2")
	length := flag.Duration("length", 0, "the length of a turn, unless the scenario has its own; default 2s on Redis, otherwise 700ms")
	svgFile := flag.String("svg", "", "draw a chart to this file")
	profile := flag.String("profile", "", "write a profile of this process's processor time to this file")
	lossMode := flag.Bool("lost", false, "run the contenders under the faults of pawl prove, and print their losses; -only then takes names separated by semicolons")
	var lossFlags lossOptions
	flag.DurationVar(&lossFlags.duration, "for", time.Minute, "with -lost: the duration of the run of each contender")
	flag.DurationVar(&lossFlags.ttl, "ttl", 2*time.Second, "with -lost: the TTL of the leases")
	flag.Uint64Var(&lossFlags.seed, "seed", 1, "with -lost: the seed of the faults, the same for each contender")
	flag.BoolVar(&lossFlags.json, "json", false, "with -lost: print a line of JSON for each contender")
	flag.StringVar(&lossFlags.keep, "keep", "", "the `FOLDER` for the histories of -lost, which pawl prove --check reads, or for the figures and pictures of -growth")
	growthMode := flag.Bool("growth", false, "measure how the cost of each step grows with the load of the server; -scenario then takes loads")
	var growthFlags growthOptions
	flag.IntVar(&growthFlags.maxSize, "most", 10_000, "with -growth: the largest size of a load")
	flag.StringVar(&growthFlags.plant, "plant", "", "with -growth: make each claim more expensive: "+strings.Join(slices.Sorted(maps.Keys(plants)), ", "))
	sessionMode := flag.Bool("sessions", false, "measure a prototype: one renewal for all leases of a client, on postgres")
	list := flag.Bool("list", false, "list scenarios and contenders, and run none")
	flag.Parse()
	if *growthMode {
		engines = append(engines, localEngines...)
	}
	e, err := engineOf(*engineName)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if *list {
		for _, s := range e.scenarios() {
			mark := ""
			if !s.wanted(e, "") {
				mark = " (if it is named)"
			}
			fmt.Printf("%-14s %s%s\n", s.name, s.description, mark)
		}
		for _, c := range e.contenders() {
			fmt.Println(c.name)
		}
		return
	}
	defaultRounds, defaultLength := e.defaultRounds()
	if *rounds == 0 {
		*rounds = defaultRounds
	}
	if *length == 0 {
		*length = defaultLength
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	switch {
	case *growthMode:
		growthFlags.loads, growthFlags.keep = *scenarioPrefixes, lossFlags.keep
		err = measureGrowth(e, growthFlags)
	case *sessionMode:
		err = measureSessions(e)
	case *lossMode:
		lossFlags.only = *onlyContenders
		err = countLosses(e, lossFlags)
	default:
		err = runScenarios(e, *scenarioPrefixes, *onlyContenders, *rounds, *length, *svgFile)
	}
	removeTemplates()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runScenarios(e engine, scenarioPrefixes, onlyContenders string, rounds int, length time.Duration, svgFile string) error {
	before := loadAverage()
	fmt.Printf("%s, %s, %d cores, %s, rounds of %v, load %.1f\n", e.name, runtime.Version(), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH, length, before)
	if e.note != nil {
		if note := e.note(); note != "" {
			fmt.Println(note)
		}
	}
	if before > maxLoadBefore {
		fmt.Fprintf(os.Stderr, "bench: the machine was not quiet: load %.1f before the start\n", before)
	}
	var measured []measurement
	for _, s := range e.scenarios() {
		if !s.wanted(e, scenarioPrefixes) {
			continue
		}
		var contenders []contender
		for _, c := range e.contenders() {
			c.engine = e.name
			if (onlyContenders == "" || slices.Contains(strings.Split(onlyContenders, ","), c.name)) && (s.fits == nil || s.fits(c)) {
				contenders = append(contenders, c)
			}
		}
		if len(contenders) == 0 {
			continue
		}
		n := rounds
		if s.rounds > 0 {
			n = s.rounds
		}
		began := readCPU()
		results, err := measure(e, s, contenders, n, length)
		if err != nil {
			return err
		}
		if reason := unquietReason(began, readCPU()); reason != "" {
			fmt.Fprintf(os.Stderr, "bench: the machine was not quiet during %s: %s\n", s.name, reason)
		}
		printTable(os.Stdout, s, results)
		measured = append(measured, measurement{s, results})
	}
	if svgFile == "" {
		return nil
	}
	f, err := os.Create(svgFile)
	if err != nil {
		return err
	}
	drawChart(f, measured)
	return f.Close()
}

// measure runs each contender once in each round, in changing order, on empty servers.
func measure(e engine, s scenario, contenders []contender, rounds int, length time.Duration) ([]result, error) {
	runs := make([][]figures, len(contenders))
	errs := make([]error, len(contenders))
	for round := range rounds {
		for turn := range contenders {
			i := (turn + round) % len(contenders)
			srv, err := e.start()
			if err != nil {
				return nil, err
			}
			f, err := s.run(srv, contenders[i], length)
			srv.stop()
			if err != nil {
				errs[i] = err
				continue
			}
			runs[i] = append(runs[i], f)
		}
	}
	results := make([]result, len(contenders))
	for i, c := range contenders {
		results[i] = result{contender: c.name}
		if len(runs[i]) == 0 {
			results[i].err = errs[i]
			if errs[i] == nil {
				results[i].err = errors.New("no round")
			}
			continue
		}
		for k := range runs[i][0] {
			var values []float64
			for _, f := range runs[i] {
				values = append(values, f[k])
			}
			results[i].medians = append(results[i].medians, median(values))
		}
	}
	return results, nil
}
