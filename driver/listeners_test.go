package driver_test

import (
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestListenersGetSignalsUntilTheyStop(t *testing.T) {
	var l driver.Listeners
	var received []string
	listen := func(name string) func() {
		return l.Listen(func(driver.Signal) { received = append(received, name) })
	}
	stopA := listen("a")
	stopB := listen("b")
	l.Notify(driver.Signal{})
	stopA()
	stopA() // a second call does nothing
	l.Notify(driver.Signal{})
	stopB()
	l.Notify(driver.Signal{})
	if want := []string{"a", "b", "b"}; !slices.Equal(received, want) {
		t.Errorf("%v received signals, want %v", received, want)
	}
}

// A function that Notify calls may itself call Listen and stop.
func TestAListenerMayStopWhileNotifyCallsIt(t *testing.T) {
	var l driver.Listeners
	n := 0
	var stop func()
	stop = l.Listen(func(driver.Signal) {
		n++
		stop()
		l.Listen(func(driver.Signal) { n += 10 })
	})
	l.Notify(driver.Signal{})
	if n != 1 {
		t.Errorf("n is %d after the first signal, want 1", n)
	}
	l.Notify(driver.Signal{})
	if n != 11 {
		t.Errorf("n is %d after the second signal, want 11", n)
	}
}
