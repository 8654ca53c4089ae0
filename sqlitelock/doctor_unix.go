//go:build unix

package sqlitelock

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// shared reports whether a file can be opened under another path, where it has other
// companions.
func shared(path string, info os.FileInfo) (found []driver.Finding) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		found = append(found, engine.Found(driver.SeverityError, "hard links",
			fmt.Sprintf("%s has %d names: who opens it by another one does not share its -wal and -shm, sees nothing of its locks, and damages it", path, s.Nlink),
			fmt.Sprintf("delete the others: find / -xdev -samefile %s", quote(path)))...)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // on Linux
	if mountsFile(string(mounts), path) {
		found = append(found, engine.Found(driver.SeverityError, "mount",
			path+" is a mount of its own: a program that opens it at its source does not share its companion files, sees none of its locks, and damages it",
			"mount the folder, so that the file, its -wal and its -shm are shared as one")...)
	}
	return found
}

// mountsFile reports whether a path is a mount point. The fifth word of each line of
// mounts is a mount point.
func mountsFile(mounts, path string) bool {
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for line := range strings.Lines(mounts) {
		if words := strings.Fields(line); len(words) > 4 && words[4] == escaped {
			return true
		}
	}
	return false
}
