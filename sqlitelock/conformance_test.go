package sqlitelock

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	c := clock()
	folder, files := t.TempDir(), 0
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			return open(t, filepath.Join(folder, strconv.Itoa(files)), &Options{now: c.Now})
		},
		Clock:     c,
		NoNetwork: true,
		Wipe:      func(testing.TB) { files++ }, // Open then uses a new file

		AtomicAll:    true,
		ReportsLater: true,
	})
}

func TestAThousandWaitersAreServedInOrder(t *testing.T) {
	skipIfShort(t, "a thousand waiters take long")
	t.Parallel()
	path := newPath(t)
	drivertest.CheckLongQueue(t, open(t, path, nil), open(t, path, nil), 1000)
}
