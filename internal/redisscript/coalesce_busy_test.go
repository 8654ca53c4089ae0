package redisscript

import (
	"hash/maphash"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

func TestANameIsBusyForAWhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &busy{seed: maphash.MakeSeed(), began: time.Now()}
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
