package drivertest

import (
	"sync"
	"testing"
)

// topic is a part of the suite.
type topic struct {
	name string
	test func(*suite)
	look string              // what a person is to look at where a subtest of it fails
	can  func(s *suite) bool // whether it can be tested; nil if it always can
}

// lastTopic is reported last: what it finds, a subtest of another one mostly names.
const lastTopic = "Random"

// topics are all of them, the most telling first.
var topics = []topic{
	{basics, testBasics, "", nil},
	{"Properties", testProperties, "Properties, and Diagnose if the driver has it", nil},
	{"Acquire", testAcquire, "what Acquire answers, above all to a token that holds or waits already: it is known by its token", nil},
	{"Renew", testRenew, "Renew: it compares the token, then extends, and answers per lease", nil},
	{"Release", testRelease, "Release: it ends what its token holds or waits for, and nothing else, and passes the name on in the same step", nil},
	{"Expiry", testExpiry, "whose clock decides, and that each step first removes what has expired", nil},
	{"Queue", testQueue, "the order of the queue, and who is granted when its head leaves", nil},
	{"Ticket", testTicket, "Claim.Ticket: a place as if the claim had come then", func(s *suite) bool { return s.raises }},
	{"Place", testPlace, "QueueTTL: a place lasts that long from each repeat", nil},
	{"Promotion", testPromotion, "how long a grant lasts that was passed on: as long as the place would have", nil},
	{"ReadWrite", testReadWrite, "weights and limits: a reader is 1 of Unlimited, a writer Exclusive", nil},
	{"Semaphore", testSemaphore, "weights and limits: each claim is held to its own limit", nil},
	{"Fence", testFence, "the fence: max(last fence + 1, the clock in microseconds), stored in the step that grants, and kept when the name is free", nil},
	{"Raise", testRaise, "RaiseFence", func(s *suite) bool { return s.raises }},
	{"Force", testForce, "Claim.Force: it breaks, opens, passes all who wait and is granted in one step", nil},
	{"Value", testValue, "Claim.Value, LeaseRef.Value and Claim.Above: what the name keeps, also when it is free", nil},
	{"Break", testBreaking, "Break: who has this fence, or a range with it", func(s *suite) bool { return s.breaks }},
	{"LockDelay", testLockDelay, "how long a name stays closed: it is kept with the name, also when nobody holds it", nil},
	{"MinHold", testMinHold, "LeaseRef.MinHold: the name stays held, and not by the token", nil},
	{"Names", testNames, "how a name becomes a key: collations, patterns, paths, escapes, lengths", nil},
	{"Sessions", testSessions, "how a session stores names: its encoding, collation, escapes and modes; pin what it depends on, see Harness.Sessions", func(s *suite) bool { return len(s.Sessions) > 0 }},
	{"Invalid", testInvalid, "Validate: it is called before anything is sent", nil},
	{"Inspect", testInspect, "Inspect: what it shows of a name, and what it does not", nil},
	{"List", testList, "List: the order, the prefix, and what it leaves out", func(s *suite) bool { return s.lists }},
	{"Secret", testSecret, "where a token could be read: errors, logs, entries", nil},
	{"Signals", testSignals, "Listen, and who is sent a signal; with locktable: Driver.Deliver", func(s *suite) bool { return s.signals }},
	{"Watch", testWatch, "Watch, and that each step with news tells", func(s *suite) bool { return s.tells }},
	{"Ctx", testCtx, "what a call does when its ctx is over, before it or in the midst of it", nil},
	{"End", testEnd, "driver.End: what arrives after its end, by the clock of the server, changes nothing. See End in docs/writing-a-backend.md", nil},
	{"Trouble", testTrouble, "what the driver makes of the errors of its client library: a *driver.Error with Backend, Op, Name and Err", func(s *suite) bool { return !s.NoNetwork }},
	{"Close", testClose, "Close, and that every method answers ErrClosed after it", nil},
	{"All", testAll, "AcquireAll: all or none, in one step", func(s *suite) bool { return s.AllAtOnce }},
	{"Concurrent", testConcurrent, "that a step is atomic: two of them never work on one entry at the same time, not even in two processes", nil},
	{"Client", testClient, "what the log says; if the topics above pass, it is the speed, or a call that waits", nil},
	{"ClientLoss", testClientLoss, "how a holder hears that it lost: the answers to Renew, and signals", nil},
	{lastTopic, testRandom, "the sequence of operations above: what memlock answers is right", nil},
}

// runTopics runs all topics: where the clock is injected one after the other, and else
// side by side. It returns when all of their subtests have.
func (s *suite) runTopics(t *testing.T) {
	var others sync.WaitGroup
	defer others.Wait()
	for _, topic := range topics {
		if topic.can != nil && !topic.can(s) {
			t.Logf("not run: %s, for the driver has no such ability", topic.name)
			continue
		}
		one := func() bool {
			return t.Run(topic.name, func(t *testing.T) {
				own := s.of(t, topic)
				topic.test(own)
				own.tests.Wait()
				if topic.name == lastTopic {
					others.Wait()
				}
			})
		}
		switch {
		case topic.name == basics:
			if !one() {
				t.Fatal("the suite ends here: mend that first, for the rest would fail of it, too")
			}
		case s.Clock != nil, topic.name == lastTopic:
			one()
		default:
			others.Go(func() { one() })
		}
	}
}
