package drivertest

import (
	"sync"
	"testing"
)

// topic is a part of the suite.
type topic struct {
	name       string
	test       func(*suite)
	advice     string              // the advice if a subtest of the topic fails
	isTestable func(s *suite) bool // whether the topic can be tested; nil means always
}

// topics are all topics. A topic comes before the topics that need it, according to the
// faults in faults_*_test.go, so that the most useful failure is the first. If Random
// fails, usually a subtest of another topic fails, too.
var topics = []topic{
	{basics, testBasics, "", nil},
	{"Properties", testProperties, "Properties, and Diagnose if the driver has it", nil},
	{"Acquire", testAcquire, "what Acquire returns, above all for a token that already holds or waits", nil},
	{"Renew", testRenew, "Renew: it compares the token, then extends, and answers per lease", nil},
	{"Release", testRelease, "Release: it ends the lease or place of its token, and no other, and grants to the next waiters in the same step", nil},
	{"Semaphore", testSemaphore, "weights and limits: each claim is held to its own limit", nil},
	{"Queue", testQueue, "the order of the queue, and who is granted when its head leaves", nil},
	{"Place", testPlace, "QueueTTL: a place lasts that long from each repeat", nil},
	{"Promotion", testPromotion, "a grant to a waiter: it lasts as long as the place would have lasted", nil},
	{"ReadWrite", testReadWrite, "weights and limits: a reader is 1 of Unlimited, a writer Exclusive", nil},
	{"Break", testBreaking, "Break: it finds the lease with this fence, or with a range that contains it", func(s *suite) bool { return s.canBreak }},
	{"Close", testClose, "Close, and that every method answers ErrClosed after it", nil},
	{"Force", testForce, "Claim.Force: it breaks all leases, opens the name, passes all waiters, and is granted, in one step", nil},
	{"Fence", testFence, "the fence: max(last fence + 1, the clock in microseconds), stored in the step that grants, and kept when the name is free", nil},
	{"Raise", testRaise, "RaiseFence", func(s *suite) bool { return s.canRaise }},
	{"Secret", testSecret, "where a token could be read: errors, logs, entries", nil},
	{"Inspect", testInspect, "Inspect: what it shows of a name, and what it does not", nil},
	{"Ticket", testTicket, "Claim.Ticket: a place as if the claim had come then", func(s *suite) bool { return s.canRaise }},
	{"LockDelay", testLockDelay, "how long a name stays closed: that is stored with the name, even without a holder", nil},
	{"MinHold", testMinHold, "LeaseRef.MinHold: the name stays held, but no longer by the token", nil},
	{"Expiry", testExpiry, "whose clock decides, and that each step first removes what has expired", nil},
	{"Names", testNames, "how a name becomes a key: collations, patterns, paths, escapes, lengths", nil},
	{"Signals", testSignals, "Listen, and which client gets a signal; with locktable: Driver.Deliver", func(s *suite) bool { return s.canSignal }},
	{"List", testList, "List: the order, the prefix, and what it leaves out", func(s *suite) bool { return s.canList }},
	{"End", testEnd, "driver.End: a request that arrives after its end, by the server's clock, changes nothing. https://github.com/pawl-go/pawl/blob/main/docs/internals/writing-a-store.md says how", nil},
	{"Value", testValue, "Claim.Value, LeaseRef.Value and Claim.ValueBelow: the value of the name, even while it is free", nil},
	{"Sessions", testSessions, "how a session stores names: its encoding, collation, escapes and modes; set them in the driver, see Harness.Sessions", func(s *suite) bool { return len(s.Sessions) > 0 }},
	{"Invalid", testInvalid, "Validate: it must be called before any request", nil},
	{"Watch", testWatch, "Watch, and that each step with a visible change calls the watches", func(s *suite) bool { return s.canWatch }},
	{"Ctx", testCtx, "what a call does if its ctx has ended before it, or ends during it", nil},
	{"Trouble", testTrouble, "how the driver wraps errors of its client library: in a *driver.Error with Backend, Op, Name and Err", func(s *suite) bool { return !s.NoNetwork }},
	{"All", testAll, "AcquireAll: all or none, in one step", func(s *suite) bool { return s.AtomicAll }},
	{"Concurrent", testConcurrent, "whether a step is atomic: two steps must never work on one entry at the same time, not even in two processes", nil},
	{"Client", testClient, "the log; if the topics above pass, the backend is too slow, or a call waits", nil},
	{"ClientLoss", testClientLoss, "how a holder learns of a loss: the answers to Renew, and signals", nil},
	{"Random", testRandom, "the sequence of operations above: the answers of memlock are right. rapid stores the sequence in a .fail file below testdata/rapid, " +
		"and begins with it the next time; delete the file when the test passes", nil},
}

// runTopics runs all topics: one after the other if the clock is injected, and otherwise
// in parallel. Their subtests begin in the order of the topics, and topics are reported
// in this order, so that the most useful failure is the first. runTopics returns when all
// subtests have.
func (s *suite) runTopics(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	before := make(chan struct{}) // closed when the topics before this one have been reported
	close(before)
	for _, topic := range topics {
		if topic.isTestable != nil && !topic.isTestable(s) {
			t.Logf("not run: %s, because the driver has no such ability", topic.name)
			continue
		}
		begun, reported, last := make(chan struct{}), make(chan struct{}), before
		begin := sync.OnceFunc(func() { close(begun) })
		before = reported
		runTopic := func() bool {
			defer close(reported)
			defer begin() // -run may skip the topic
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
			if !runTopic() {
				t.Fatal("the suite ends here, because the other topics would fail for the same reason")
			}
		case s.Clock != nil:
			runTopic()
		default:
			all.Go(func() { runTopic() })
			<-begun
		}
	}
}
