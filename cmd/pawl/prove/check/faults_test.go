package check

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A machine may pause a process. The checker then excuses the process, as if a fault had
// stopped it.
func TestAPauseExcusesAProcess(t *testing.T) {
	next := hold(2, 5, 1200, 1300, 2)
	calm := &history.Phase{Phase: history.Calm, From: 0, To: ms(9500)}
	checkCases(t, []historyCase{
		{"seen late, after a pause", []any{
			fault(history.Pause, 1, 950, 6000), hold(1, 0, 10, 0, 1, lost(900, 6001, 6001, 9000)), next,
		}, ""},
		{"seen late, after a pause of another process", []any{
			fault(history.Pause, 3, 950, 6000), hold(1, 0, 10, 0, 1, lost(900, 6001, 6001, 9000)), next,
		}, LossNotSeen},
		{"seen late, after a pause of the controller, which has the registers", []any{
			fault(history.Pause, server, 950, 6000), hold(1, 0, 10, 0, 1, lost(900, 6001, 6001, 9000)), next,
		}, ""},
		{"seen late, after a stop that the machine made longer", []any{
			fault(history.Stop, 1, 950, 4000), fault(history.Pause, 1, 940, 6000),
			hold(1, 0, 10, 0, 1, lost(900, 6001, 6001, 9000)), next,
		}, ""},
		{"lost in the calm phase, during a pause", []any{
			calm, fault(history.Pause, 1, 15, 1400), hold(1, 0, 10, 0, 1, lost(20, 30, 30, 40)),
		}, ""},
		{"lost in the calm phase, after a pause", []any{
			calm, fault(history.Pause, 2, 0, 300), hold(1, 900, 1000, 0, 1, lost(1020, 1030, 1030, 1040)),
		}, CalmLoss},
		{"in the wrong order, after a pause of the machine", []any{
			hold(1, 0, 10, 3000, 1), fault(history.Pause, server, 300, 700), hold(2, 100, 3250, 3260, 3), hold(3, 1500, 3050, 3060, 2),
		}, ""},
	})
}

// The checker counts pauses that no fault caused. After too many, a run proves nothing.
func TestPausesAreCounted(t *testing.T) {
	withPause := func(longest int64) *Verdict {
		return verdict(t,
			run(func(r *history.Run) { r.Workers = 2 }),
			fault(history.Stop, 1, 1000, 3000), fault(history.Pause, 1, 1000, 3000),
			fault(history.Pause, 2, 5000, 5300), fault(history.Pause, server, 6000, 6000+longest),
			&history.End{At: ms(20000)},
		)
	}
	const tooBusy = "it is too busy"
	v := withPause(400)
	if n := v.Numbers; n.Pauses != 2 || n.Paused != 400*time.Millisecond || n.LongestPause != 400*time.Millisecond || n.FaultsByKind[history.Pause] != 0 {
		t.Errorf("%d pauses, %v together, the longest %v; faults: %v", n.Pauses, n.Paused, n.LongestPause, n.FaultsByKind)
	}
	if s := strings.Join(v.Weaknesses, " "); strings.Contains(s, tooBusy) {
		t.Error(s)
	}
	if s := strings.Join(withPause(6000).Weaknesses, " "); !strings.Contains(s, tooBusy) {
		t.Error(s)
	}
}
