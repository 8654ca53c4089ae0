package postgreslock

import (
	"strings"
	"sync/atomic"
	"time"
)

// A hush is kept where the server does not let us notify: its queue of notifications is
// full, because some listener in some database stands still, or the user lacks the right.
// A signal is no more than a hint, so no grant and no release fails for it: for a while
// none are sent, and who waits finds out by asking.
type hush struct {
	until atomic.Int64 // since 1970, in microseconds
}

// hushFor is how long the server is not asked again whether it takes one.
const hushFor = 5 * time.Second

func (h *hush) kept() bool { return time.Now().UnixMicro() < h.until.Load() }

// begins reports whether a step failed only for its notifications, and keeps the hush
// from then on. It changed nothing, and is worth another try.
func (h *hush) begins(err error) bool {
	state := sqlState(err)
	full := state == "54000" && strings.Contains(err.Error(), "NOTIFY")
	forbidden := state == "42501" && strings.Contains(err.Error(), "pg_notify")
	if !full && !forbidden || h.kept() {
		return false
	}
	h.until.Store(time.Now().Add(hushFor).UnixMicro())
	return true
}
