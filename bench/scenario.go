package main

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// A scenario is one measurement.
type scenario struct {
	name    string
	what    string   // a sentence for the report
	unit    string   // the unit of the first figure
	more    bool     // a larger first figure is better
	others  []string // the names of the further figures
	charts  []string // the further figures that the chart writes beside the bar
	rounds  int      // the number of rounds, in which the contenders take turns; 0 for the flag's
	engines []string // the engines that run it; nil for all
	asked   bool     // engines other than Redis run it only if a flag names it
	fit     func(c contender) bool
	run     func(s server, c contender, length time.Duration) (figures, error)
}

// figures are the results of one run: the first is the one to compare.
type figures []float64

func scenarios() []scenario {
	return []scenario{
		own("own-1", "one goroutine, one name", 1),
		own("own-64", "64 goroutines on names of their own", 64),
		whenAsked(own("own-1000", "1000 goroutines on names of their own", 1000)),
		shared("one-8-2ms", "8 clients on one name, 2 ms of work each time", 8, 2*time.Millisecond),
		whenAsked(shared("one-64-2ms", "64 clients on one name, 2 ms of work each time", 64, 2*time.Millisecond)),
		whenAsked(shared("one-8", "8 clients on one name, no work", 8, 0)),
		shared("one-64", "64 clients on one name, no work", 64, 0),
		local(),
		requests(),
		idle("idle-50", 50, nil),
		whenAsked(idle("idle-500", 500, []string{"postgres"})),
		killedHolder(),
		deletedLock(),
		endedSession(),
		brokenLock(),
		whenAsked(held("held-10", 10, 20*time.Second)),
		held("held-1000", 1000, 10*time.Second),
		whenAsked(held("held-10000", 10_000, 20*time.Second)),
		whenAsked(held("held-100000", 100_000, 20*time.Second)),
		deadHolder(),
		distant("latency-1ms", time.Millisecond),
		distant("latency-30ms", 30*time.Millisecond),
		distant("latency-300ms", 300*time.Millisecond),
		quorum("quorum-3", 3),
		quorum("quorum-5", 5),
	}
}

// whenAsked marks a scenario that takes long and adds little to the others.
func whenAsked(s scenario) scenario {
	s.asked = true
	return s
}

// wanted reports whether to run the scenario. pick lists prefixes of the wanted names.
func (s scenario) wanted(e engine, pick string) bool {
	if pick == "" {
		return !s.asked || e.name == "redis"
	}
	return hasPrefix(s.name, pick)
}

// hasPrefix reports whether a name begins with one of the prefixes in pick.
func hasPrefix(name, pick string) bool {
	return slices.ContainsFunc(strings.Split(pick, ","), func(p string) bool { return strings.HasPrefix(name, p) })
}

// onRedis marks scenarios that inspect a Redis server.
var onRedis = []string{"redis"}

var errGaveUp = errors.New("did not get the lock in time")
