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

// command returns a command of a user other than root, which the servers refuse.
func command(tb TB, dir, path string, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	if uid, gid := serverUser(tb); uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	}
	return cmd
}

// chownToServer makes the servers' user the owner of a file.
func chownToServer(tb TB, path string) {
	tb.Helper()
	if uid, gid := serverUser(tb); uid != 0 {
		noError(tb, os.Chown(path, int(uid), int(gid)))
	}
}

// tempRoot returns a folder for temporary files that the servers' user can reach. Root's
// TMPDIR may be below a closed folder.
func tempRoot(tb TB) string {
	tb.Helper()
	if uid, _ := serverUser(tb); uid == 0 {
		return os.TempDir()
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if isOpen(dir) {
			return dir
		}
	}
	tb.Fatalf("the servers' user can reach no temporary folder: set TMPDIR to a folder that it can reach")
	return ""
}

// isOpen reports whether every user may pass through a folder and those above it.
func isOpen(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&0o001 == 0 {
		return false
	}
	above := filepath.Dir(dir)
	return above == dir || isOpen(above)
}

// serverUser returns the user of the servers if this process is root, or 0 otherwise.
func serverUser(tb TB) (uid, gid uint32) {
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
