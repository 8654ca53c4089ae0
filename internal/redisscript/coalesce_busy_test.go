package redisscript

import (
	"hash/maphash"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

func TestANameIsBusyForAWhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &busyNames{seed: maphash.MakeSeed(), began: time.Now()}
		if b.contains("job") {
			t.Error("busy from the beginning")
		}
		b.add("job")
		time.Sleep(busyTime - 1)
		if !b.contains("job") {
			t.Error("forgotten too early")
		}
		time.Sleep(1 * time.Nanosecond)
		if b.contains("job") {
			t.Error("not forgotten")
		}
	})
}
