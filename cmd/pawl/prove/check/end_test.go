package check

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestLeftoversAndFailures(t *testing.T) {
	checkCases(t, []historyCase{
		{"nothing is left", []any{&history.Left{Name: mutex}}, ""},
		{"a holder is left", []any{&history.Left{Name: mutex, Holders: 1}}, Left},
		{"a waiter is left", []any{&history.Left{Name: mutex, Waiters: 2}}, Left},
		{"processes end", []any{
			&history.Worker{End: "done"}, &history.Worker{End: "killed"}, &history.Worker{End: "crashed"},
		}, ""},
		{"a process fails", []any{&history.Worker{End: "panic: no"}}, WorkerFailed},
		{"the run fails", []any{&history.End{Error: "the server is gone"}}, RunFailed},
	})
}

func TestAllOrNothing(t *testing.T) {
	group := func(c *history.Claim) { c.Group, c.How = 1, history.All }
	other := onLock("another", history.Whole, 1)
	checkCases(t, []historyCase{
		{"all", []any{hold(1, 0, 10, 20, 1, group), hold(2, 0, 10, 20, 1, group, other)}, ""},
		{"nothing", []any{
			wait(1, 0, 10, history.TimedOut, group), wait(2, 0, 10, history.TimedOut, group, other),
		}, ""},
		{"some", []any{hold(1, 0, 10, 20, 1, group), wait(2, 0, 10, history.TimedOut, group, other)}, AllOrNothing},
		{"its process died before it had reported all grants", []any{
			hold(1, 0, 10, 0, 1, group, died(11, 12)),
			wait(2, 0, 0, history.Unknown, group, other, func(c *history.Claim) { c.Died = ms(12) }),
		}, ""},
		{"not at once", []any{hold(1, 0, 10, 20, 1, group), hold(2, 0, 11, 20, 1, group, other)}, AllOrNothing},
	})
}

func TestCalmLoss(t *testing.T) {
	calm := &history.Phase{Phase: history.Calm, From: 0, To: ms(5000)}
	stop := fault(history.Stop, 1, 4000, 4500)
	failed := func(at int64, why ...string) *history.Claim {
		return wait(1, at-10, at, history.Unknown, func(c *history.Claim) { c.Error = strings.Join(why, "") })
	}
	checkCases(t, []historyCase{
		{"no mishap", []any{calm, stop, hold(1, 0, 10, 20, 1)}, ""},
		{"a lease is lost", []any{calm, stop, hold(1, 0, 10, 0, 1, lost(20, 30, 30, 40))}, CalmLoss},
		{"a lease is lost because a renewal had no answer", []any{calm, stop, hold(1, 0, 10, 0, 1, lost(20, 30, 30, 40), func(c *history.Claim) {
			c.Why = "backend unreachable: no answer in time"
		})}, ""},
		{"a fault causes the loss of a lease", []any{calm, stop, hold(1, 0, 10, 0, 1, lost(3990, 4500, 4500, 4510))}, ""},
		{"a claim fails", []any{calm, stop, failed(3000)}, CalmLoss},
		{"a claim has no answer", []any{calm, stop, failed(3000, "no answer in time")}, ""},
		{"a claim fails during a fault", []any{calm, stop, failed(4100)}, ""},
		{"a claim fails after the calm phase", []any{calm, failed(5100)}, ""},
		{"a release comes too late", []any{
			calm, hold(1, 0, 10, 20, 1, func(c *history.Claim) { c.Release = history.Late }),
		}, CalmLoss},
		{"a process is dead", []any{calm, hold(1, 0, 10, 20, 1, died(20, 30))}, CalmLoss},
		{"a wait ends", []any{calm, wait(1, 10, 20, history.TimedOut)}, ""},
	})
}

func TestFaultRateExcludesTheServersDowntime(t *testing.T) {
	for _, tt := range []struct {
		fault *history.Fault
		want  float64
	}{
		{fault(history.Stop, 1, 1200, 2000), 3},
		{fault(history.ServerStop, server, 1250, 2000), 12},
	} {
		v := Run(historyOf(lines(
			hold(1, 0, 1010, 1020, 1), hold(2, 0, 1030, 1040, 2), hold(3, 0, 1050, 1060, 3), tt.fault,
			&history.Phase{Phase: history.Calm, To: ms(1000)}, &history.Phase{Phase: history.Faults, From: ms(1000), To: ms(2000)},
		)))
		if got := v.Numbers.FaultRate; got != tt.want {
			t.Errorf("%s: %v leases a second; want %v", tt.fault.Kind, got, tt.want)
		}
	}
}

func TestWeaknesses(t *testing.T) {
	chosen := func(kinds ...string) *history.Run {
		return run(func(r *history.Run) { r.Faults = kinds })
	}
	good := lines(chosen())
	for _, tt := range []struct {
		name  string
		lines []history.Line
		want  string
	}{
		{"nothing happened", good, "No lease was granted."},
		{"few leases", lines(hold(1, 0, 10, 20, 1)), "Only 1 lease was granted"},
		{"no fault", lines(chosen(history.Cut)), `No fault of the kind "cut" did anything.`},
		{"a fault that did nothing", lines(chosen(history.Cut), &history.Fault{Kind: history.Cut}),
			`No fault of the kind "cut" did anything.`},
		{"nothing lost", lines(chosen(history.Stop)), "No holder lost its lease"},
		{"nothing taken over", lines(chosen(history.Kill)), "No name was taken over"},
		{"nothing stale", lines(chosen(history.Stop)), "No write came too late"},
		{"no answer", lines(chosen(), wait(1, 0, 10, history.Unknown, func(c *history.Claim) { c.Error = "i/o timeout" })),
			"1 request had no answer in time"},
		{"no pairs", good, "No two claims waited"},
		{"no wait", good, "No claim ever waited"},
		{"no write", good, "No holder wrote"},
		{"the last state is missing", good[:1], `The last state of "a mutex" was not read`},
		{"slow", lines(
			chosen(history.Cut), hold(1, 0, 10, 20, 1), &history.Phase{Phase: history.Calm, To: ms(1000)},
			&history.Phase{Phase: history.Faults, From: ms(1000), To: ms(2000)},
		), "the workers did too little"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := Run(historyOf(tt.lines))
			if all := strings.Join(v.Weaknesses, "\n"); !strings.Contains(all, tt.want) {
				t.Errorf("the weaknesses are\n%s\nwant %q", all, tt.want)
			}
			if len(v.Violations)+len(v.Weaknesses) == 0 {
				t.Error("the history has neither a violation nor a weakness")
			}
		})
	}
}
