package redisscript

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestANameIsBusyForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBusy()
		if b.is("job") {
			t.Error("busy from the beginning")
		}
		b.note("job")
		time.Sleep(busyFor - 1)
		if !b.is("job") {
			t.Error("forgotten too early")
		}
		time.Sleep(1 * time.Nanosecond)
		if b.is("job") {
			t.Error("not forgotten")
		}
	})
}
