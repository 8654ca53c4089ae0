package check

// The rules, as Violation.Rule names them, and what the history has if it breaks one.
const (
	Overlap         = "overlap"            // two holders that exclude each other were sure of the name at one time
	FenceTwice      = "fence-twice"        // two grants of a name have the same fence
	FenceFalls      = "fence-falls"        // a claim that was asked for after a grant has a smaller fence
	Register        = "register"           // the register that checks differs from its accepted writes
	StaleAccepted   = "stale-accepted"     // a write was accepted after one with a greater fence
	PlainLostInCalm = "plain-lost-in-calm" // an update was lost without a fault that explains it
	ReleaseLied     = "release-lied"       // a release said that the lease was held, but it was over
	LossNotSeen     = "loss-not-seen"      // a lease was over, and its holder did not learn that in time
	Order           = "order"              // a claim was served before one that had asked earlier
	Idle            = "idle"               // a name was free, and its waiters kept waiting
	Linearizable    = "linearizable"       // no order of the claims and releases of a name explains their answers
	Left            = "left"               // a name had holders or waiters after the last worker had closed
	WorkerFailed    = "worker-failed"      // a process of a worker ended in a way that no fault explains
	RunFailed       = "run-failed"         // the run ended before its time
	AllOrNothing    = "all-or-nothing"     // a claim of several names together got some of them
	CalmLoss        = "calm-loss"          // a lease was lost, or a claim failed, before the first fault
)
