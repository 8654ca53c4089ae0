//go:build !linux

package screen

// flush does nothing: Close waits for the pending output.
func flush() {}
