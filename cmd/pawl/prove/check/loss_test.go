package check

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestLossNotSeen(t *testing.T) {
	next := hold(2, 5, 1200, 1300, 2)
	notPawl := func(r *history.Run) { r.Lock = "another" }
	notWoken := func(c *history.Claim) { c.Woken = 0 }
	checkCases(t, []historyCase{
		{"seen in time", []any{hold(1, 0, 10, 0, 1, lost(900, 1100, 1100, 9000)), next}, ""},
		{"seen a little late", []any{hold(1, 0, 10, 0, 1, lost(900, 2200, 2200, 9000)), next}, ""},
		{"seen too late", []any{hold(1, 0, 10, 0, 1, lost(900, 2201, 2201, 9000)), next}, LossNotSeen},
		{"never seen", []any{hold(1, 0, 10, 0, 1, lost(900, 0, 0, 9000)), next}, LossNotSeen},
		{"released meanwhile", []any{hold(1, 0, 10, 0, 1, lost(900, 0, 0, 1500)), next}, ""},
		{"dead, and the controller noticed late", []any{hold(1, 0, 10, 0, 1, died(900, 9000)), next}, ""},
		{"never seen, and dead later", []any{hold(1, 0, 10, 0, 1, died(4000, 9000)), next}, "linearizable loss-not-seen overlap"},
		{"dead meanwhile", []any{hold(1, 0, 10, 0, 1, died(900, 1500)), next}, ""},
		{"stopped meanwhile", []any{
			fault(history.Stop, 1, 950, 6000), hold(1, 0, 10, 0, 1, lost(900, 6001, 6001, 9000)), next,
		}, ""},
		{"stopped, and seen too late", []any{
			fault(history.Stop, 1, 950, 6000), hold(1, 0, 10, 0, 1, lost(900, 7001, 7001, 9000)), next,
		}, LossNotSeen},
		{"another was stopped", []any{
			fault(history.Stop, 2, 950, 1100), fault(history.Stop, 3, 950, 6000),
			hold(1, 0, 10, 0, 1, lost(900, 6001, 6001, 9000)), next,
		}, LossNotSeen},
		{"superseded by a reader", []any{
			hold(1, 0, 10, 0, 1, writer, lost(900, 0, 0, 9000)), hold(2, 5, 1200, 1300, 2, reader),
		}, LossNotSeen},
		{"beside a reader", []any{
			hold(1, 0, 10, 0, 1, reader, lost(900, 0, 0, 9000)), hold(2, 5, 1200, 1300, 2, reader),
		}, ""},
		{"superseded before the holder knew of its grant", []any{
			hold(1, 0, 1400, 0, 1, lost(0, 0, 0, 9000)), next,
		}, LossNotSeen},

		{"not woken", []any{hold(1, 0, 10, 0, 1, lost(900, 1100, 0, 9000), notWoken), next}, LossNotSeen},
		{"not woken, but released soon", []any{hold(1, 0, 10, 0, 1, lost(900, 1100, 0, 3000), notWoken), next}, ""},
		{"another lock wakes no holder", []any{
			run(notPawl), hold(1, 0, 10, 0, 1, lost(900, 1100, 0, 9000), notWoken), next,
		}, ""},
	})
}

func TestMaxLossDelay(t *testing.T) {
	v := verdict(t, hold(1, 0, 10, 0, 1, lost(900, 1250, 1250, 9000)), hold(2, 5, 1200, 1300, 2))
	if got, want := v.Numbers.MaxLossDelay, 50*time.Millisecond; got != want {
		t.Errorf("MaxLossDelay = %v, want %v", got, want)
	}
}
