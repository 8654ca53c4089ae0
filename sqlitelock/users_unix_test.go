//go:build unix

package sqlitelock

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// unprivileged makes children run as a user without root's rights, in that user's folder.
func unprivileged(t *testing.T) (folder string) {
	t.Helper()
	if os.Getuid() != 0 {
		return t.TempDir()
	}
	const nobody = 65534
	// TMPDIR may be below a folder that the other user cannot enter.
	folder, err := os.MkdirTemp("/var/tmp", "pawl-") //nolint:usetesting // see above
	noError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	binary := filepath.Join(folder, "test")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, b, 0o700) //nolint:gosec // it is executed
	}
	for _, path := range []string{folder, binary} { // whatever the umask
		if err == nil {
			err = os.Chmod(path, 0o755) //nolint:gosec // the other user gets there, and runs it
		}
	}
	if err == nil {
		err = os.Chown(folder, nobody, nobody)
	}
	noError(t, err)
	asChild = func(cmd *exec.Cmd) {
		cmd.Path = binary
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	t.Cleanup(func() { asChild = func(*exec.Cmd) {} })
	return folder
}

// SQLite makes the companions with the mode that the umask leaves, and gives them the
// file's mode a moment later. A process that opens the file in between must not be left
// with companions that it can only read for the rest of its life.
func TestWhoOpensTheFileWhileItsCompanionsAreMadeCanLock(t *testing.T) {
	for _, which := range []string{"-shm", "-wal"} {
		for mode, what := range map[os.FileMode]string{0o440: "read", 0o000: "open"} {
			t.Run(what+which, func(t *testing.T) {
				path := filepath.Join(unprivileged(t), "locks.db")
				_, stays := spawn(t, "stays", path)
				if !stays.Scan() {
					t.Fatal("the first user cannot open the file")
				}
				noError(t, os.Chmod(path+which, mode))
				_, opens := spawn(t, "opens patiently", path)
				opens.Scan()
				time.Sleep(200 * time.Millisecond) // it is opening the file
				noError(t, os.Chmod(path+which, 0o600))
				if opens.Scan(); opens.Text() != "<nil>" {
					t.Errorf("the second user is answered: %s", opens.Text())
				}
			})
		}
	}
}

func TestAFileWhoseCompanionsStayReadOnlyIsRefusedWithinSeconds(t *testing.T) {
	path := filepath.Join(unprivileged(t), "locks.db")
	_, stays := spawn(t, "stays", path)
	stays.Scan()
	if err := os.Chmod(path+"-shm", 0o440); err != nil { //nolint:gosec // it is the test
		t.Fatal(err)
	}
	_, opens := spawn(t, "opens", path)
	opens.Scan()
	if !opens.Scan() || opens.Text() == "<nil>" {
		t.Errorf("it was opened, or says nothing: %q", opens.Text())
	}
	t.Log(opens.Text())
}
