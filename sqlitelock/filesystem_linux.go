package sqlitelock

import (
	"syscall"

	"github.com/pawl-go/pawl/driver"
)

// filesystem judges where the file is, by the magic numbers of statfs(2).
func filesystem(path string) *driver.Finding {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return nil
	}
	switch uint32(s.Type) {
	case 0x6969:
		return networked("NFS")
	case 0xFF534D42, 0xFE534D42, 0x517B:
		return networked("SMB")
	case 0x00C36400:
		return networked("Ceph")
	case 0x5346414F, 0x6B414653:
		return networked("AFS")
	case 0x0BD00BD0:
		return networked("Lustre")
	case 0x01161970:
		return networked("GFS2")
	case 0x7461636F:
		return networked("OCFS2")
	case 0x01021997: // also what some virtual machines share folders with
		return networked("9p")
	case 0x65735546:
		return &driver.Finding{
			Severity: "warning", Subject: "filesystem", Detail: "the file is on FUSE, behind which may be a network",
			Advice: "use a local disk, unless you know that this is one",
		}
	}
	return nil
}
