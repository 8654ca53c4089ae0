//go:build unix

package sqlitelock

import (
	"os"
	"strings"
	"syscall"

	"github.com/pawl-go/pawl/driver"
)

// shared reports whether a file can be opened under another path, where it has other
// companions.
func shared(path string, info os.FileInfo) (found []driver.Finding) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		found = append(found, linked(path, uint64(s.Nlink))...) //nolint:unconvert // other systems have other types
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // on Linux
	if mountsFile(string(mounts), path) {
		found = append(found, mounted(path)...)
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
