package drivertest_test

import (
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// dropSignals returns a fault's signal function that drops some signals.
func dropSignals(drop func(locktable.Signal) bool) func(*server, locktable.Signal) []locktable.Signal {
	return func(_ *server, s locktable.Signal) []locktable.Signal {
		if drop(s) {
			return nil
		}
		return []locktable.Signal{s}
	}
}

var signalFaults = []fault{{
	name: "signals never come", mustFail: []string{"Signals/APromotedWaiterGetsASignalWithItsFence", "Signals/ABrokenHolderGetsASignalOfItsLoss"},
	signal: dropSignals(func(locktable.Signal) bool { return true }),
}, {
	name: "a loss is not signalled", mustFail: []string{"Signals/AForcedOutHolderGetsASignalOfItsLoss", "Signals/ABrokenHolderGetsASignalOfItsLoss", "Signals/APromotedHolderGetsASignalOfItsLoss"},
	signal: dropSignals(func(s locktable.Signal) bool { return s.Kind == driver.SignalLost }),
}, {
	name:     "a grant is not signalled",
	mustFail: []string{"Signals/AWaiterGetsASignalWhenTheOneAheadLeaves", "Signals/AWaiterGetsASignalWhenAnotherClientFindsTheHolderExpired", "Signals/AWaiterGetsASignalWhenTheHolderIsBroken"},
	signal:   dropSignals(func(s locktable.Signal) bool { return s.Kind == driver.SignalGranted }),
}, {
	name: "a signal is for the wrong token", mustFail: []string{"Signals/APromotedWaiterGetsASignalWithItsFence"},
	signal: func(_ *server, s locktable.Signal) []locktable.Signal {
		s.Token[0] ^= 1
		return []locktable.Signal{s}
	},
}, {
	name: "a signal has no fence", mustFail: []string{"Signals/APromotedWaiterGetsASignalWithItsFence"},
	signal: func(_ *server, s locktable.Signal) []locktable.Signal {
		s.Fence = 0
		return []locktable.Signal{s}
	},
}, {
	name: "only the first of several is signalled", mustFail: []string{"Signals/EachOfSeveralPromotedWaitersGetsASignalOfItsGrant"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		if len(e.Signals) > 1 {
			e.Signals = e.Signals[:1]
		}
	}),
}, {
	name: "a new head of the queue gets no retry",
	mustFail: []string{"Signals/TheHeadGetsARetryWhenOnlyTheMinHoldIsLeft",
		"Signals/TheNextGetsARetryWhenTheHeadGetsAPermitBesideAMinHold",
		"Signals/TheNextGetsARetryWhenTheHeadLosesItsPlaceDuringALockDelay",
		"Signals/TheHeadGetsARetryWhenABreakClosesTheName"},
	step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		stood := slices.Clone(e.Queue)
		f(now)
		if len(stood) > 0 && len(e.Queue) > 0 && e.Queue[0].Token != stood[0].Token {
			e.Signals = slices.DeleteFunc(e.Signals, func(s locktable.Signal) bool { return s.Kind == driver.SignalRetry })
		}
	},
}, {
	name: "every client gets every signal", mustFail: []string{"Signals/NoClientGetsSignalsForTokensOfAnotherClient"},
	signal: func(s *server, sig locktable.Signal) []locktable.Signal { return s.toAllClients(sig.Signal) },
}, {
	name: "a stopped listener still gets signals", mustFail: []string{"Signals/EveryListenerGetsSignalsUntilItIsStopped"},
	driver: func(d *faulty) driver.Driver { return endlessListener{d} },
}}

// endlessListener is a driver that never stops a listener.
type endlessListener struct{ *faulty }

func (d endlessListener) Listen(f func(driver.Signal)) func() {
	d.Driver.Listen(f)
	return func() {}
}
