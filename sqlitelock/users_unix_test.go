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
	for _, path := range []string{folder, binary} { // the umask may have removed rights
		if err == nil {
			err = os.Chmod(path, 0o755) //nolint:gosec // the other user gets there, and runs it
		}
	}
	if err == nil {
		err = os.Chown(folder, nobody, nobody)
	}
	noError(t, err)
	prepareChild = func(cmd *exec.Cmd) {
		cmd.Path = binary
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	t.Cleanup(func() { prepareChild = func(*exec.Cmd) {} })
	return folder
}

// SQLite creates the companions with a mode from the umask, and sets the file's mode a
// moment later. A process that opens the file in between must retry, because its
// companions would stay read-only.
func TestOpenWaitsForTheModeOfTheCompanions(t *testing.T) {
	for _, suffix := range []string{"-shm", "-wal"} {
		for mode, what := range map[os.FileMode]string{0o440: "read", 0o000: "open"} {
			t.Run(what+suffix, func(t *testing.T) {
				path := filepath.Join(unprivileged(t), "locks.db")
				_, first := spawn(t, "stays", path)
				if !first.Scan() {
					t.Fatal("the first user cannot open the file")
				}
				noError(t, os.Chmod(path+suffix, mode))
				_, second := spawn(t, "opens patiently", path)
				second.Scan()
				time.Sleep(200 * time.Millisecond) // it is opening the file
				noError(t, os.Chmod(path+suffix, 0o600))
				if second.Scan(); second.Text() != "<nil>" {
					t.Errorf("the second user got %s, want a grant", second.Text())
				}
			})
		}
	}
}

func TestAFileWhoseCompanionsStayReadOnlyIsRefusedWithinSeconds(t *testing.T) {
	path := filepath.Join(unprivileged(t), "locks.db")
	_, first := spawn(t, "stays", path)
	first.Scan()
	if err := os.Chmod(path+"-shm", 0o440); err != nil { //nolint:gosec // the driver must refuse it
		t.Fatal(err)
	}
	_, second := spawn(t, "opens", path)
	second.Scan()
	if !second.Scan() || second.Text() == "<nil>" {
		t.Errorf("the file was opened, or the child printed nothing: %q", second.Text())
	}
	t.Log(second.Text())
}
