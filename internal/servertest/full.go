package servertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// FullDisk fills the disk of the server. The server must then refuse new names, with a
// hint, but renew and release held leases. After empty it must grant names again.
func FullDisk(tb TB, d driver.Driver, fill, empty func()) {
	tb.Helper()
	held := Mutex("held")
	first := Gets(tb, d, held)
	fill()
	var refused error // the first claims may succeed, because some pages have room
	for i := 0; refused == nil && i < 20000; i++ {
		_, refused = d.Acquire(context.Background(), Mutex(fmt.Sprintf("%0200d", i)))
	}
	if e, ok := errors.AsType[*driver.Error](refused); !ok || e.Permanent || !strings.Contains(e.Hint, "full") {
		tb.Errorf("on a full disk: %v; want a temporary error with a hint", refused)
	}
	for range 20 {
		Renews(tb, d, held)
	}
	Releases(tb, d, held)
	empty()
	if after := Gets(tb, d, Mutex("held")); after.Fence <= first.Fence {
		tb.Errorf("fence %d after %d", after.Fence, first.Fence)
	}
	Gets(tb, d, Mutex("after"))
}
