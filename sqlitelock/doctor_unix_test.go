//go:build unix

package sqlitelock

import "testing"

func TestAFileThatIsMountedWithoutItsFolderIsFound(t *testing.T) {
	const mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n" +
		"512 22 254:0 /srv/locks.db /app/my\\040locks.db rw,relatime - ext4 /dev/vda rw\n" +
		"513 22 254:0 /srv /app/locks rw,relatime - ext4 /dev/vda rw\n"
	for path, want := range map[string]bool{
		"/app/my locks.db": true, "/app/locks/locks.db": false, "/srv/locks.db": false,
	} {
		if got := mountsFile(mounts, path); got != want {
			t.Errorf("%s is a mount: %v", path, got)
		}
	}
}
