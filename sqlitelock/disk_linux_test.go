package sqlitelock

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAFullDiskRefusesOnlyNewNames(t *testing.T) {
	disk := servertest.SmallDisk(t, t.TempDir(), "1m")
	d := open(t, filepath.Join(disk.Dir, "locks.db"), nil)
	held := mutex("held")
	gets(t, d, held)
	disk.Fill()

	for range 500 { // more renewals than the log can take without a restart
		if answers, err := d.Renew(ctx, []driver.LeaseRef{lease(held)}); err != nil || answers[0] != nil {
			t.Fatalf("renewing on a full disk: %v, %v", answers, err)
		}
	}
	releases(t, d, held)

	var err error // the first names still fit into the pages
	for i := 0; err == nil && i < 10000; i++ {
		_, err = d.Acquire(ctx, mutex(fmt.Sprintf("%0200d", i)))
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Permanent || !isFull(err) || e.Hint == "" {
		t.Fatalf("on a full disk: %v; want a temporary error with a hint", err)
	}
	t.Log(err)

	disk.Empty()
	gets(t, d, mutex("after"))
	findsNothing(t, d)
}

func TestAReadOnlyDiskIsAPermanentError(t *testing.T) {
	folder := servertest.SmallDisk(t, t.TempDir(), "4m").Dir
	path := filepath.Join(folder, "locks.db")
	remount := func(flags uintptr) {
		noError(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|flags, ""))
	}
	remount(syscall.MS_RDONLY)
	openFails(t, path, nil)

	remount(0)
	d := open(t, path, nil)
	gets(t, d, mutex("job"))
	noError(t, d.Close())
	remount(syscall.MS_RDONLY)
	openFails(t, path, nil, "to be writable")
}
