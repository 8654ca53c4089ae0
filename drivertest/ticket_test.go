package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

func TestLateTicketIsTriedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := newKit(t, inMemory(t), time.Second)
		tried, undone := 0, 0
		k.runInTime(func() time.Time {
			came := time.Now()
			if tried++; tried < 20 {
				time.Sleep(driver.MaxLead + 1) // the machine does something else
			}
			return came
		}, func() { undone++ })
		if tried != 20 || undone != 19 {
			t.Errorf("tried %d times, undone %d times; want 20 and 19", tried, undone)
		}
	})
}
