package check

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestFences(t *testing.T) {
	checkCases(t, []historyCase{
		{"they rise", []any{hold(1, 0, 10, 20, 1), hold(2, 21, 22, 30, 2)}, ""},
		{"of two readers, the later answer has the smaller fence", []any{
			hold(1, 0, 10, 20, 2, reader), hold(2, 9, 12, 30, 1, reader),
		}, ""},
		{"they fall", []any{hold(1, 0, 10, 20, 2), hold(2, 21, 22, 30, 1)}, "fence-falls linearizable"},
		{"they fall later", []any{
			hold(1, 0, 10, 20, 8), hold(2, 21, 22, 30, 9), hold(3, 31, 32, 40, 7),
		}, "fence-falls linearizable"},
		{"one fence twice", []any{hold(1, 0, 10, 20, 5), hold(2, 21, 22, 30, 5)}, "fence-twice linearizable"},
		{"the same fence for two names", []any{hold(1, 0, 10, 20, 5), hold(2, 21, 22, 30, 5, writer)}, ""},
		{"no fences", []any{
			run(func(r *history.Run) { r.Fenced = false }), hold(1, 0, 10, 20, 0), hold(2, 21, 22, 30, 0),
		}, ""},
	})
}
