package mysqllock_test

import (
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The disk of the tables is full: new names are refused, and held ones can be renewed and
// released in the free space of their page.
func TestAFullDiskRefusesOnlyNewNames(t *testing.T) {
	skipIfShort(t, "a full disk")
	s := mysqltest.Start(t)
	folder := filepath.Join(s.Dir, "data", s.NewDatabase(t))
	disk := servertest.SmallDisk(t, folder, "2m")
	servertest.FullDisk(t, openDriver(t, "mysql:"+s.DSN(filepath.Base(folder))), disk.Fill, disk.Empty)
}
