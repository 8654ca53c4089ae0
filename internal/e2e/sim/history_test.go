package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// history is the record of a schedule: the answer to each call, and the time in which its
// user believed that it held the lease.
type history struct {
	w *world

	mu         sync.Mutex // protects all below, and the fields of each call
	calls      []*call
	holders    []*call // calls that believe that they hold a lease now
	shocks     []shock
	events     []event
	violations []violation
	tasks      []*task                // runs of functions of Once
	detached   map[driver.Token]*call // calls whose leases are detached, and not attached again
}

// A call is one call of a user, and its results.
type call struct {
	step
	number  int
	process *process

	began, answered moment // answered is never if there is no answer yet
	ctxEnds         moment // when its ctx ends
	err             error

	granted         bool
	fence           uint64
	believedFrom    moment // its user believes from then on that it holds the lease: the answer, or Do's call of f
	releaseBegan    moment // when the user called Release, or returned from f
	lossSeen        moment // when its user saw that the lease is lost
	lost            *pawl.LostError
	releaseReturned moment // when Release, or Do, returned
	releaseErr      error  // of Release, or of Do

	believes func() bool
	done     <-chan struct{}
	lease    *pawl.Lease // not with Do

	confirmed  []confirmation
	detached   moment // when Detach returned; 0 if it has not
	attached   *call  // the call that attached it
	attachedTo *call  // the call whose lease it has attached
	sent       moment // when Attach was sent
	hasRun     bool   // Once: the function has run
	ownError   bool   // Election: the last function returned an error of its own
	resigned   bool   // Election: the last function had resigned
	answer     error  // of Once or Run, or the last one of Watch
	terms      []*call
	sightings  []sighting
}

func (c *call) String() string {
	return fmt.Sprintf("#%d (process %d: %v)", c.number, c.process.number, c.step)
}

// A shock is an event that may end a lease before its holder can see that, as the
// documents say: a forced claim, a break, a clock that jumps, lost data.
type shock struct {
	name     string // "" is all names
	what     string
	from, to moment // it took effect between them
	by       *call
	fence    uint64 // of the lease that a break names
}

// An event is one line of the output of a failed schedule.
type event struct {
	at   moment
	name string // "" concerns all
	who  int    // process, or 0
	what string
	more any
}

// A violation is the breach of a rule.
type violation struct {
	name     string
	text     string
	from, to moment // of the calls concerned
}

func (w *world) note(name string, p *process, what string, more any) {
	who := 0
	if p != nil {
		who = p.number
	}
	h := &w.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{w.now(), name, who, what, more})
}

func (w *world) violated(name, format string, args ...any) {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	w.history.violatedLocked(name, format, args...)
}

// violatedLocked records a violation.
func (h *history) violatedLocked(name, format string, args ...any) {
	v := violation{name: name, text: fmt.Sprintf(format, args...), from: h.w.now(), to: h.w.now()}
	concernsCall := false
	for _, a := range args {
		if c, ok := a.(*call); ok {
			if !concernsCall {
				v.to = 0
			}
			concernsCall = true
			v.from, v.to = min(v.from, c.began), max(v.to, c.answered, c.believedFrom, c.releaseBegan, c.lossSeen, c.releaseReturned)
		}
	}
	if !concernsCall {
		v.from = 0
	}
	h.violations = append(h.violations, v)
}

// noteShock records a shock that excuses the loss of leases from now on.
func (w *world) noteShock(name, what string) {
	// A lease that is granted later may depend on a place that was kept before.
	w.history.addShock(shock{name: name, what: what, from: w.now(), to: w.now() + w.plan.baseTTL})
}

func (h *history) addShock(s shock) *shock {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shocks = append(h.shocks, s)
	return &h.shocks[len(h.shocks)-1]
}

// excusedLocked reports whether a shock may have ended the lease of c by this moment.
func (h *history) excusedLocked(c *call, at moment) bool {
	return slices.ContainsFunc(h.shocks, func(s shock) bool {
		return (s.name == "" || s.name == c.name) && s.by != c && s.from <= at && s.to >= c.began
	})
}

// shockedLocked reports whether there was any shock to a name between two moments.
func (h *history) shockedLocked(name string, from, to moment) bool {
	return slices.ContainsFunc(h.shocks, func(s shock) bool {
		return (s.name == "" || s.name == name) && s.from <= to && s.to >= from
	})
}

// noteDeath removes the calls of a killed process from the holders.
func (h *history) noteDeath(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holders = slices.DeleteFunc(h.holders, func(c *call) bool { return c.process == p })
}

// eventsOf returns the events of a violation's name during the calls that it concerns.
func (h *history) eventsOf(v violation) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	events := slices.DeleteFunc(slices.Clone(h.events), func(e event) bool {
		return e.name != v.name && e.name != "" || e.at < v.from || e.at > v.to
	})
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for i, e := range events {
		const first, most = 40, 100 // the output has only the first and the last of many events
		if skipped := len(events) - most; skipped > 0 && i >= first && i < first+skipped {
			if i == first {
				fmt.Fprintf(&b, "  ... %d more ...\n", skipped)
			}
			continue
		}
		who := "          "
		if e.who > 0 {
			who = fmt.Sprintf("process %d ", e.who)
		}
		fmt.Fprintf(&b, "  %12v  %s %s", e.at.Round(time.Microsecond), who, e.what)
		if e.more != nil {
			fmt.Fprintf(&b, ": %v", e.more)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// nodeAnswer is the answer of a node.
type nodeAnswer struct {
	node int
	err  error
}

func (s nodeAnswer) String() string {
	if s.err == nil {
		return fmt.Sprintf("node %d: ok", s.node)
	}
	return fmt.Sprintf("node %d: %v", s.node, s.err)
}
