package check

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestIdle(t *testing.T) {
	holder := hold(1, 0, 10, 1000, 1)
	waiter := func(got int64) *history.Claim { return hold(2, 500, got, got+10, 1000) }
	checkCases(t, []historyCase{
		{"served", []any{holder, waiter(1002)}, ""},
		{"served just in time", []any{holder, waiter(5000)}, ""},
		{"served too late", []any{holder, waiter(5002)}, Idle},
		{"never served", []any{holder, wait(2, 500, 6000, history.TimedOut)}, Idle},
		{"a leader", []any{holder, wait(2, 500, 6000, history.TimedOut, how(history.Lead))}, Idle},
		{"asked late", []any{holder, hold(2, 3000, 6000, 6010, 1000)}, ""},
		{"the holder died", []any{hold(1, 0, 10, 0, 1, died(900, 1000)), waiter(8900)}, ""},
		{"the holder died long ago", []any{hold(1, 0, 10, 0, 1, died(900, 1000)), waiter(9100)}, Idle},
		{"a claim failed", []any{holder, wait(3, 900, 2000, history.Unknown), waiter(9000)}, ""},
		{"a claim was given up", []any{holder, wait(3, 900, 950, history.TimedOut), waiter(6000)}, Idle},
		{"a claim was given up, under a fault", []any{
			fault(history.Swallow, 3, 800, 1000), holder, wait(3, 900, 950, history.TimedOut), waiter(6000),
		}, ""},
		{"a fault of the waiter", []any{holder, fault(history.Delay, 2, 4000, 4100), waiter(6000)}, ""},
		{"a fault of another worker", []any{holder, fault(history.Delay, 7, 4000, 4100), waiter(6000)}, Idle},
		{"a fault of another waiter", []any{
			holder, fault(history.Delay, 3, 4000, 4100), wait(3, 400, 7000, history.TimedOut), waiter(6000),
		}, ""},
		{"a fault of a waiter that came later", []any{
			holder, fault(history.Delay, 3, 4000, 4100), wait(3, 1600, 7000, history.TimedOut), waiter(6000),
		}, Idle},
		{"a fault of a waiter that came later, without a queue", []any{
			run(func(r *history.Run) { r.Ordered = false }),
			holder, fault(history.Delay, 3, 4000, 4100), wait(3, 1600, 7000, history.TimedOut), waiter(6000),
		}, ""},
		{"a fault, and much time after it", []any{holder, fault(history.Delay, 2, 4000, 4100), waiter(12_200)}, Idle},
		{"a fault, and much time before it", []any{holder, fault(history.Delay, 2, 8100, 8200), waiter(9000)}, Idle},
		{"an Overstay excuses nothing", []any{holder, fault(history.Overstay, 2, 4000, 4100), waiter(6000)}, Idle},
		{"a fault of the server", []any{holder, fault(history.ServerStop, server, 500, 600), waiter(5500)}, ""},
		{"another name", []any{holder, hold(3, 1001, 1002, 9000, 1, writer), waiter(5500)}, Idle},
	})
}
