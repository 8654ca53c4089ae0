package postgreslock

import "time"

// Driver is the type of all drivers of this package.
type Driver = lockDriver

// NotifyPauseEnd returns the end of the pause that an error begins.
func NotifyPauseEnd(err error) time.Time {
	var p notifyPause
	if !p.beginIfRefused(err) {
		return time.Time{}
	}
	return *p.until.Load()
}
