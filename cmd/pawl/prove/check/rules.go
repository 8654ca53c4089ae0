package check

// The rules, as Violation.Rule names them. Each has a file.
const (
	// Overlap: two holders that exclude each other were both sure, at one time, that they
	// held the name.
	Overlap = "overlap"

	// FenceTwice: two grants of a name have the same fence.
	FenceTwice = "fence-twice"

	// FenceFalls: a claim was asked for after another had been granted, and has a smaller
	// fence.
	FenceFalls = "fence-falls"

	// Register: the register that checks fences has another value than its accepted
	// writes add up to.
	Register = "register"

	// StaleAccepted: a write was accepted after a holder with a greater fence had used
	// the register.
	StaleAccepted = "stale-accepted"

	// PlainLostInCalm: an update was lost without a fault that explains it.
	PlainLostInCalm = "plain-lost-in-calm"

	// ReleaseLied: a release said that the lease had been held until then, but another
	// holder had the name already.
	ReleaseLied = "release-lied"

	// LostNotTold: a lease was over, and its holder did not learn that in time.
	LostNotTold = "lost-not-told"

	// Order: a claim was served before one that had asked earlier.
	Order = "order"

	// Idle: a name was free, and its waiters waited on.
	Idle = "idle"

	// Linearizable: no order of the claims and releases of a name explains their answers.
	Linearizable = "linearizable"

	// Left: a name had holders or waiters after the last worker had closed.
	Left = "left"

	// WorkerFailed: a process of a worker ended in a way that no fault explains.
	WorkerFailed = "worker-failed"

	// RunFailed: the run ended before its time.
	RunFailed = "run-failed"

	// AllOrNothing: a claim of several names together got some of them.
	AllOrNothing = "all-or-nothing"

	// CalmLoss: a lease was lost, or a claim failed, before the first fault.
	CalmLoss = "calm-loss"
)
