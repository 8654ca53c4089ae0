package race

import "testing"

func TestRace(*testing.T) {
	n, done := 0, make(chan struct{})
	go func() {
		n++
		close(done)
	}()
	n++
	<-done
}
