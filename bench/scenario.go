package main

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// A scenario is one measurement.
type scenario struct {
	name         string
	description  string   // a sentence for the report
	unit         string   // the unit of the first figure
	moreIsBetter bool     // a larger first figure is better
	otherFigures []string // the names of the further figures
	chartFigures []string // the further figures that the chart writes beside the bar
	rounds       int      // the number of rounds, in which the contenders take turns; 0 for the flag's
	engines      []string // the engines that run it; nil for all
	optIn        bool     // engines other than Redis run it only if a flag names it
	fits         func(c contender) bool
	run          func(s server, c contender, length time.Duration) (figures, error)
}

// figures are the results of one run: the first is the one to compare.
type figures []float64

func scenarios() []scenario {
	return []scenario{
		ownNames("own-1", "one goroutine, one name", 1),
		ownNames("own-64", "64 goroutines on names of their own", 64),
		optIn(ownNames("own-1000", "1000 goroutines on names of their own", 1000)),
		sharedName("one-8-2ms", "8 clients on one name, 2 ms of work each time", 8, 2*time.Millisecond),
		optIn(sharedName("one-64-2ms", "64 clients on one name, 2 ms of work each time", 64, 2*time.Millisecond)),
		optIn(sharedName("one-8", "8 clients on one name, no work", 8, 0)),
		sharedName("one-64", "64 clients on one name, no work", 64, 0),
		localName(),
		requests(),
		idleWaiters("idle-50", 50, nil),
		optIn(idleWaiters("idle-500", 500, []string{"postgres"})),
		killedHolder(),
		deletedLock(),
		endedSession(),
		brokenLock(),
		optIn(heldLeases("held-10", 10, 20*time.Second)),
		heldLeases("held-1000", 1000, 10*time.Second),
		optIn(heldLeases("held-10000", 10_000, 20*time.Second)),
		optIn(heldLeases("held-100000", 100_000, 20*time.Second)),
		deadHolder(),
		distantServer("latency-1ms", time.Millisecond),
		distantServer("latency-30ms", 30*time.Millisecond),
		distantServer("latency-300ms", 300*time.Millisecond),
		quorum("quorum-3", 3),
		quorum("quorum-5", 5),
	}
}

// optIn marks a scenario that takes long and adds little to the others.
func optIn(s scenario) scenario {
	s.optIn = true
	return s
}

// wanted reports whether to run the scenario. The prefixes are as in hasPrefix.
func (s scenario) wanted(e engine, prefixes string) bool {
	if prefixes == "" {
		return !s.optIn || e.name == "redis"
	}
	return hasPrefix(s.name, prefixes)
}

// hasPrefix reports whether a name begins with one of prefixes, separated by commas.
func hasPrefix(name, prefixes string) bool {
	return slices.ContainsFunc(strings.Split(prefixes, ","), func(p string) bool { return strings.HasPrefix(name, p) })
}

// onRedis marks scenarios that inspect a Redis server.
var onRedis = []string{"redis"}

var errGaveUp = errors.New("did not get the lock in time")
