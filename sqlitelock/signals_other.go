//go:build !linux

package sqlitelock

// wakeSocket does nothing on this system, where a socket needs a file, which stays when
// its process is killed. Drivers poll for signals instead.
type wakeSocket struct{}

func newWakeSocket(string) *wakeSocket        { return nil }
func (*wakeSocket) reaches(inbox string) bool { return false }
func (*wakeSocket) wake(inbox string)         {}
func (*wakeSocket) listen(func())             {}
func (*wakeSocket) close()                    {}
