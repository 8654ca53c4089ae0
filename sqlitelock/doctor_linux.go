package sqlitelock

import (
	"syscall"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// networks are the magic numbers in statfs(2) of network filesystems.
var networks = map[uint32]string{
	0x6969:     "NFS",
	0xFF534D42: "SMB", 0xFE534D42: "SMB", 0x517B: "SMB",
	0x00C36400: "Ceph",
	0x5346414F: "AFS", 0x6B414653: "AFS",
	0x0BD00BD0: "Lustre",
	0x01161970: "GFS2",
	0x7461636F: "OCFS2",
	0x01021997: "9p", // some virtual machines also share folders with it
}

// filesystem checks that a file is not on a network filesystem.
func filesystem(path string) []driver.Finding {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return nil
	}
	if kind, ok := networks[uint32(s.Type)]; ok {
		return networkFinding(kind)
	}
	if s.Type == 0x65735546 {
		return engine.Found(driver.SeverityWarning, "filesystem", "the file is on FUSE, behind which may be a network",
			"use a local disk, unless you know that this is one")
	}
	return nil
}
