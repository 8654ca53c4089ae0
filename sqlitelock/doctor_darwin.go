package sqlitelock

import (
	"syscall"

	"github.com/pawl-go/pawl/driver"
)

// filesystem checks that a file is on a local filesystem. The kernel marks the local
// mounts.
func filesystem(path string) []driver.Finding {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil || s.Flags&mntLocal != 0 {
		return nil
	}
	return networkFinding("a network filesystem")
}

const mntLocal = 0x1000 // MNT_LOCAL of sys/mount.h
