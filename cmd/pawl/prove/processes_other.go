//go:build unix && !linux

package prove

// descendants lists none: a signal reaches the process group of the server only.
func descendants(int) []int { return nil }
