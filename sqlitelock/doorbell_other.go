//go:build !linux

package sqlitelock

// doorbell does nothing here: outside Linux a socket needs a file, which stays when its
// process is killed. Drivers poll for signals instead.
type doorbell struct{}

func newDoorbell(string) *doorbell    { return nil }
func (*doorbell) reaches(string) bool { return false }
func (*doorbell) ring(string)         {}
func (*doorbell) listen(func())       {}
func (*doorbell) close()              {}
