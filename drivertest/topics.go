package drivertest

import (
	"sync"
	"testing"
)

// topic is a part of the suite.
type topic struct {
	name string
	test func(*suite)
	look string              // what to look at if a subtest of it fails
	can  func(s *suite) bool // whether it can be tested; nil if it always can
}

// topics are all topics, the most useful failure first: a topic comes before the topics
// that need it, as far as the faults of faults_*_test.go show that. For a failure of
// Random, usually a subtest of another topic fails, too.
var topics = []topic{
	{basics, testBasics, "", nil},
	{"Properties", testProperties, "Properties, and Diagnose if the driver has it", nil},
	{"Acquire", testAcquire, "what Acquire answers, above all to a token that holds or waits already: it is known by its token", nil},
	{"Renew", testRenew, "Renew: it compares the token, then extends, and answers per lease", nil},
	{"Release", testRelease, "Release: it ends what its token holds or waits for, and nothing else, and passes the name on in the same step", nil},
	{"Semaphore", testSemaphore, "weights and limits: each claim is held to its own limit", nil},
	{"Queue", testQueue, "the order of the queue, and who is granted when its head leaves", nil},
	{"Place", testPlace, "QueueTTL: a place lasts that long from each repeat", nil},
	{"Promotion", testPromotion, "how long a grant lasts that was passed on: as long as the place would have", nil},
	{"ReadWrite", testReadWrite, "weights and limits: a reader is 1 of Unlimited, a writer Exclusive", nil},
	{"Break", testBreaking, "Break: who has this fence, or a range with it", func(s *suite) bool { return s.canBreak }},
	{"Close", testClose, "Close, and that every method answers ErrClosed after it", nil},
	{"Force", testForce, "Claim.Force: it breaks, opens, passes all who wait and is granted in one step", nil},
	{"Fence", testFence, "the fence: max(last fence + 1, the clock in microseconds), stored in the step that grants, and kept when the name is free", nil},
	{"Raise", testRaise, "RaiseFence", func(s *suite) bool { return s.canRaise }},
	{"Secret", testSecret, "where a token could be read: errors, logs, entries", nil},
	{"Inspect", testInspect, "Inspect: what it shows of a name, and what it does not", nil},
	{"Ticket", testTicket, "Claim.Ticket: a place as if the claim had come then", func(s *suite) bool { return s.canRaise }},
	{"LockDelay", testLockDelay, "how long a name stays closed: it is kept with the name, also when nobody holds it", nil},
	{"MinHold", testMinHold, "LeaseRef.MinHold: the name stays held, and not by the token", nil},
	{"Expiry", testExpiry, "whose clock decides, and that each step first removes what has expired", nil},
	{"Names", testNames, "how a name becomes a key: collations, patterns, paths, escapes, lengths", nil},
	{"Signals", testSignals, "Listen, and who is sent a signal; with locktable: Driver.Deliver", func(s *suite) bool { return s.canSignal }},
	{"List", testList, "List: the order, the prefix, and what it leaves out", func(s *suite) bool { return s.canList }},
	{"End", testEnd, "driver.End: what arrives after its end, by the clock of the server, changes nothing. https://github.com/pawl-go/pawl/blob/main/docs/internals/writing-a-store.md says how", nil},
	{"Value", testValue, "Claim.Value, LeaseRef.Value and Claim.ValueBelow: what the name keeps, also when it is free", nil},
	{"Sessions", testSessions, "how a session stores names: its encoding, collation, escapes and modes; pin what it depends on, see Harness.Sessions", func(s *suite) bool { return len(s.Sessions) > 0 }},
	{"Invalid", testInvalid, "Validate: it is called before anything is sent", nil},
	{"Watch", testWatch, "Watch, and that each step with news tells", func(s *suite) bool { return s.canWatch }},
	{"Ctx", testCtx, "what a call does when its ctx is over, before it or in the midst of it", nil},
	{"Trouble", testTrouble, "what the driver makes of the errors of its client library: a *driver.Error with Backend, Op, Name and Err", func(s *suite) bool { return !s.NoNetwork }},
	{"All", testAll, "AcquireAll: all or none, in one step", func(s *suite) bool { return s.AtomicAll }},
	{"Concurrent", testConcurrent, "that a step is atomic: two of them never work on one entry at the same time, not even in two processes", nil},
	{"Client", testClient, "what the log says; if the topics above pass, it is the speed, or a call that waits", nil},
	{"ClientLoss", testClientLoss, "how a holder hears that it lost: the answers to Renew, and signals", nil},
	{"Random", testRandom, "the sequence of operations above: what memlock answers is right. rapid keeps it in a .fail file below testdata/rapid, and " +
		"begins with it the next time; delete the file when the test passes", nil},
}

// runTopics runs all topics: one after the other if the clock is injected, and otherwise
// side by side. Their subtests begin in the order of the topics, and each topic is
// reported after those before it, so that the most useful failure is the first. runTopics
// returns when all subtests have.
func (s *suite) runTopics(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	before := make(chan struct{}) // closed when the topics before this one have been reported
	close(before)
	for _, topic := range topics {
		if topic.can != nil && !topic.can(s) {
			t.Logf("not run: %s, because the driver has no such ability", topic.name)
			continue
		}
		begun, reported, last := make(chan struct{}), make(chan struct{}), before
		begin := sync.OnceFunc(func() { close(begun) })
		before = reported
		one := func() bool {
			defer close(reported)
			defer begin() // -run may leave the topic out
			return t.Run(topic.name, func(t *testing.T) {
				defer begin()
				own := s.forTopic(t, topic)
				topic.test(own)
				begin()
				own.tests.Wait()
				<-last
			})
		}
		switch {
		case topic.name == basics:
			if !one() {
				t.Fatal("the suite ends here: mend that first, because the other topics would fail for the same reason")
			}
		case s.Clock != nil:
			one()
		default:
			all.Go(func() { one() })
			<-begun
		}
	}
}
