package check

// The rules, as Violation.Rule names them, with the violation that each reports.
const (
	Overlap         = "overlap"            // two holders that exclude each other were sure of the name at the same time
	FenceTwice      = "fence-twice"        // two grants of a name have the same fence
	FenceFalls      = "fence-falls"        // a claim that was asked for after a grant has a smaller fence
	Register        = "register"           // the register that checks fences differs from its accepted writes
	StaleAccepted   = "stale-accepted"     // a write was accepted after one with a greater fence
	PlainLostInCalm = "plain-lost-in-calm" // an update was lost without a fault that explains it
	ReleaseLied     = "release-lied"       // a release returned OK, but the lease was over
	LossNotSeen     = "loss-not-seen"      // a lease was over, and its holder did not see that in time
	Order           = "order"              // a claim was served before one that had asked earlier
	Idle            = "idle"               // a name was free, and its waiters kept waiting
	Linearizable    = "linearizable"       // no order of the claims and releases of a name explains their answers
	Left            = "left"               // a name had holders or waiters after the last worker had closed
	WorkerFailed    = "worker-failed"      // no fault explains the end of a worker's process
	RunFailed       = "run-failed"         // the run ended before its time
	AllOrNothing    = "all-or-nothing"     // a claim of several names together got only some of them
	CalmLoss        = "calm-loss"          // a lease was lost, or a claim failed, before the first fault
)
