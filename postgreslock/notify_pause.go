package postgreslock

import (
	"strings"
	"sync/atomic"
	"time"
)

// A notifyPause is a pause in sending notifications. It begins when the server refuses a
// notification: its queue is full, because a listener in some database hangs, or the user
// lacks the right. A signal is only a hint, so no grant and no release fails without it.
// During the pause this client sends no notifications, and waiters poll the table.
type notifyPause struct {
	until atomic.Pointer[time.Time]
}

// notifyPauseTime is the time for which this client sends no notifications after a
// refusal.
const notifyPauseTime = 5 * time.Second

func (h *notifyPause) isActive() bool {
	until := h.until.Load()
	return until != nil && time.Now().Before(*until)
}

// beginIfRefused reports whether a step failed only because of its notifications, and
// begins the pause if so. The step changed nothing, and the caller repeats it. The result
// is true even if the pause had begun, because the step was sent earlier.
func (h *notifyPause) beginIfRefused(err error) bool {
	state := sqlState(err)
	full := state == "54000" && strings.Contains(err.Error(), "NOTIFY")
	forbidden := state == "42501" && strings.Contains(err.Error(), "pg_notify")
	if !full && !forbidden {
		return false
	}
	until := time.Now().Add(notifyPauseTime)
	h.until.Store(&until)
	return true
}
