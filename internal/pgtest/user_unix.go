//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// command runs as a user other than root, because PostgreSQL and PgBouncer refuse root.
func command(tb TB, dir, path string, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	if uid, gid := other(tb); uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	}
	return cmd
}

// give makes that user the owner of a file.
func give(tb TB, path string) {
	tb.Helper()
	if uid, gid := other(tb); uid != 0 {
		noError(tb, os.Chown(path, int(uid), int(gid)))
	}
}

// reachable returns a folder for temporary files that the servers' user can reach. Root's
// own may be below a closed folder.
func reachable(tb TB) string {
	tb.Helper()
	if uid, _ := other(tb); uid == 0 {
		return os.TempDir()
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if isOpen(dir) {
			return dir
		}
	}
	tb.Fatalf("no temporary folder is open to the user of the servers: set TMPDIR to one")
	return ""
}

// isOpen reports whether each user may pass through a folder.
func isOpen(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&0o001 == 0 {
		return false
	}
	above := filepath.Dir(dir)
	return above == dir || isOpen(above)
}

// other is the user of the servers if this process is root, and 0 otherwise.
func other(tb TB) (uid, gid uint32) {
	tb.Helper()
	if os.Getuid() != 0 {
		return 0, 0
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		tb.Skipf("PostgreSQL does not run as root, and there is no other user: %v", err)
	}
	id, _ := strconv.ParseUint(u.Uid, 10, 32)
	group, _ := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group)
}
