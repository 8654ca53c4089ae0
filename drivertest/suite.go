package drivertest

import (
	"flag"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// suite runs the tests of one topic.
type suite struct {
	*testing.T
	Harness
	properties driver.Properties
	topic
	*running

	canBreak, canRaise, canList, canSignal, canWatch, canDiagnose bool // the abilities of the driver

	short    bool // -short, and time is real
	timeless bool // failures count even if the subtest was late, see late.go

	tests           sync.WaitGroup // subtests that run in parallel
	earlierReported chan struct{}  // for the basics: closed when all earlier subtests have been reported
}

// forTopic returns the suite for one topic.
func (s *suite) forTopic(t *testing.T, topic topic) *suite {
	return &suite{
		T: t, Harness: s.Harness, properties: s.properties, topic: topic, running: s.running,
		canBreak: s.canBreak, canRaise: s.canRaise, canList: s.canList, canDiagnose: s.canDiagnose, canSignal: s.canSignal, canWatch: s.canWatch,
		short: s.short,
	}
}

// running is the state that the topics of one Run share.
type running struct {
	stalls       stalls
	failed       atomic.Bool
	fastestGrant atomic.Int64  // the time of the fastest grant of the basics, in ns; 0 if -run skipped them
	ended        chan struct{} // closed some time after the first failure: no other subtest begins
}

func newRunning() *running { return &running{ended: make(chan struct{})} }

// failurePatiences is the time from the first failure to the end of the other subtests,
// in Patiences. It is short, because Run prints no failure before they end.
const failurePatiences = 2

// recordFailure records that a subtest has failed.
func (s *suite) recordFailure() {
	if s.failed.CompareAndSwap(false, true) && !s.thorough {
		time.AfterFunc(failurePatiences*s.Patience, func() { close(s.ended) })
	}
}

// isOver reports whether ended is closed.
func (s *suite) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// subtestSlots limits the parallel subtests of this process. They mostly wait for time to
// pass, so there may be many more than processors, unless -parallel sets the number.
var subtestSlots = sync.OnceValue(func() chan struct{} {
	n := 48
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" {
			n, _ = strconv.Atoi(f.Value.String())
		}
	})
	return make(chan struct{}, max(n, 1))
})

// test runs f as a subtest with new clients and a new name. With a real clock, subtests
// run in parallel. An injected clock moves for all subtests, so then they run one after
// the other. It does not use testing's Parallel, with which a subtest begins only after
// Run has returned.
func (s *suite) test(name string, f func(k *kit)) { s.testWithAdvice(s.advice, name, f) }

// testWithAdvice is test for a subtest with its own "look at" text.
func (s *suite) testWithAdvice(advice, name string, f func(k *kit)) {
	before, own := s.earlierReported, make(chan struct{})
	if s.name == basics {
		s.earlierReported = own
	}
	reported := sync.OnceFunc(func() { close(own) })
	do := func() {
		defer reported() // -run may skip the subtest
		s.Run(name, func(t *testing.T) {
			defer reported() // before its cleanups, which may wait for hanging calls
			if s.isOver() {
				t.Skip("not run: " + alreadyFailed)
			}
			s.attempt(t, advice, before, f)
		})
	}
	if s.Clock != nil {
		do()
		return
	}
	subtestSlots() <- struct{}{} // in order, because a subtest of the basics waits for the earlier ones
	s.tests.Go(func() {
		defer func() { <-subtestSlots() }()
		do()
	})
}

// testPatient is test for a subtest that waits for many units. With -short and a real
// clock it is skipped.
func (s *suite) testPatient(name string, f func(k *kit)) {
	if s.short {
		s.Run(name, func(t *testing.T) { t.Skip("make test-all runs this: it waits for many units of real time") })
		return
	}
	s.test(name, f)
}

// testExact is test for an event at an exact instant, which needs an injected clock.
func (s *suite) testExact(name string, f func(k *kit)) {
	if s.Clock != nil {
		s.test(name, f)
	}
}
