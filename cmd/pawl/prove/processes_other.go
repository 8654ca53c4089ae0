//go:build unix && !linux

package prove

// descendants returns nil here, so a signal reaches only the server's process group.
func descendants(int) []int { return nil }
