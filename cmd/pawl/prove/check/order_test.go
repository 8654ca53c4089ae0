package check

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestOrder(t *testing.T) {
	holder := hold(1, 0, 10, 3000, 1)
	x := func(got int64, changes ...change) *history.Claim {
		return hold(2, 100, got, got+10, uint64(got), changes...)
	}
	y := func(got int64, changes ...change) *history.Claim {
		return hold(3, 1500, got, got+10, uint64(got), changes...)
	}
	unordered := func(r *history.Run) { r.Ordered = false }
	checkCases(t, []historyCase{
		{"in order", []any{holder, x(3001), y(3050)}, ""},
		{"in the wrong order", []any{holder, x(3250), y(3050)}, Order},
		{"the first one was not served", []any{holder, wait(2, 100, 5000, history.TimedOut), y(3050)}, Order},
		{"the first one gave up before", []any{holder, wait(2, 100, 3100, history.TimedOut), y(3050)}, ""},
		{"overtaken within the tolerance", []any{holder, x(3140), y(3050)}, ""},
		{"asked at nearly the same time", []any{holder, x(3250), hold(3, 1100, 3050, 3060, 2)}, ""},
		{"no queue", []any{run(unordered), holder, x(3250), y(3050)}, ""},
		{"a try", []any{holder, x(3250), y(3050, how(history.Try))}, ""},
		{"a fault of the first", []any{holder, fault(history.Delay, 2, 200, 210), x(3250), y(3050)}, ""},
		{"a fault of the second", []any{holder, fault(history.Cut, 3, 2900, 2900), x(3250), y(3050)}, ""},
		{"a fault of the server", []any{holder, fault(history.ServerStop, server, 300, 400), x(3250), y(3050)}, ""},
		{"a fault of the holder", []any{holder, fault(history.Stop, 1, 300, 400), x(3250), y(3050)}, Order},
		{"a fault that did nothing", []any{
			holder, &history.Fault{Kind: history.Cut, Worker: 2, From: ms(200), To: ms(300)}, x(3250), y(3050),
		}, Order},
		{"a fault after the wrong grant", []any{holder, fault(history.Cut, 2, 3100, 3200), x(3250), y(3050)}, Order},
		{"both of one client", []any{holder, x(3250, byWorker(3)), y(3050)}, ""},
		{"handed over within a client", []any{
			holder, x(3250), hold(4, 50, 3001, 3040, 2, byWorker(3)), y(3050),
		}, ""},
		{"the first one waits behind its own client's claim", []any{
			holder, wait(4, 50, 5000, history.TimedOut, byWorker(2), onLock(mutex, history.Whole, 1), how(history.All)), x(3250), y(3050),
		}, ""},
		{"its client asked for another claim a moment later, which was granted first", []any{
			holder, x(3250), hold(4, 150, 3001, 3040, 2, byWorker(2)), y(3050),
		}, ""},
		{"its client asked for another claim a moment later, which was granted last", []any{
			holder, x(3250), hold(4, 150, 3300, 3340, 3300, byWorker(2)), y(3050),
		}, Order},
		{"another claim of its client was refused", []any{
			holder, x(3250), wait(4, 150, 151, history.Held, byWorker(2), how(history.Try)), y(3050),
		}, Order},
		{"readers, of whom the first saw its grant late", []any{
			hold(1, 0, 10, 3000, 1, writer), x(3250, reader), y(3050, reader),
		}, ""},
		{"readers, of whom the first was served much later", []any{
			hold(1, 0, 10, 3000, 1, writer), x(4150, reader), y(3050, reader),
		}, Order},
		{"a pause of the first, when it was served", []any{
			holder, fault(history.Pause, 2, 3060, 3250), x(3250), y(3050),
		}, ""},
		{"another claim of its client was asked for long after", []any{
			holder, x(3250), wait(4, 1200, 5000, history.TimedOut, byWorker(2)), y(3050),
		}, Order},
		{"of different weights", []any{
			hold(1, 0, 10, 3000, 1, permits(3)), x(3250, permits(2)), y(3050, permits(1)),
		}, ""},
		{"of the same weight", []any{
			hold(1, 0, 10, 3000, 1, permits(3)), x(3250, permits(2)), y(3050, permits(2)),
		}, Order},
	})
}

func TestQueuePairs(t *testing.T) {
	holder := hold(1, 0, 10, 3000, 1)
	for _, tt := range []struct {
		name  string
		parts []any
		want  int
	}{
		{"three wait", []any{
			holder, hold(2, 100, 3010, 3020, 2), hold(3, 1200, 3030, 3040, 3), hold(4, 2300, 3050, 3060, 4),
		}, 3},
		{"no claim waits for another", []any{hold(2, 100, 110, 120, 2), hold(3, 1500, 1510, 1520, 3)}, 0},
		{"soon after each other", []any{holder, hold(2, 100, 3010, 3020, 2), hold(3, 1000, 3030, 3040, 3)}, 0},
		{"with a fault of the first", []any{
			holder, fault(history.Cut, 2, 200, 200), hold(2, 100, 3010, 3020, 2), hold(3, 1200, 3030, 3040, 3),
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := verdict(t, tt.parts...).Numbers.QueuePairs; got != tt.want {
				t.Errorf("%d pairs, want %d", got, tt.want)
			}
		})
	}
}
