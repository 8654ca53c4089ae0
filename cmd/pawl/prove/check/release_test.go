package check

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestReleaseLied(t *testing.T) {
	late := func(c *history.Claim) { c.Release = history.Late }
	checkCases(t, []historyCase{
		{"released before the next one", []any{hold(1, 0, 10, 20, 1), hold(2, 5, 21, 30, 2)}, ""},
		{"the next grant's answer comes before the release's", []any{
			hold(1, 0, 10, 20, 1, func(c *history.Claim) { c.Freed = ms(25) }), hold(2, 5, 21, 30, 2),
		}, ""},
		{"the release returns Late", []any{hold(1, 0, 10, 25, 1, believed(15), late), hold(2, 5, 21, 30, 2)}, ""},
		{"the release returns OK too late", []any{hold(1, 0, 10, 25, 1, believed(15)), hold(2, 5, 21, 30, 2)}, "release-lied linearizable"},
		{"the release returns OK too late, and the next lease was lost at once", []any{
			hold(1, 0, 10, 25, 1, believed(15)), hold(2, 5, 21, 30, 2, lost(0, 26, 26, 30)),
		}, "release-lied linearizable"},
		{"the other lease was granted before, and its answer was late", []any{
			hold(1, 0, 10, 25, 2, believed(15)), hold(2, 5, 21, 30, 1, lost(0, 26, 26, 30)),
		}, ""},
		{"without fences, the next claim was asked for after Got", []any{
			run(func(r *history.Run) { r.Fenced = false }),
			hold(1, 0, 10, 25, 0, believed(15)), hold(2, 12, 21, 30, 0, lost(0, 26, 26, 30)),
		}, ReleaseLied},
		{"without fences, the next claim was asked for before Got", []any{
			run(func(r *history.Run) { r.Fenced = false }),
			hold(1, 0, 10, 25, 0, believed(15)), hold(2, 5, 21, 30, 0, lost(0, 26, 26, 30)),
		}, ""},
		{"permits", []any{
			hold(1, 0, 10, 25, 1, permits(1), believed(15)), hold(2, 5, 21, 30, 2, permits(2)),
		}, ""},
		{"too many permits", []any{
			hold(1, 0, 10, 25, 1, permits(1), believed(15)), hold(2, 0, 10, 25, 2, permits(1), believed(15)),
			hold(3, 5, 21, 30, 3, permits(2)),
		}, "release-lied linearizable"},
	})
}
