package driver_test

import (
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestListenersHearUntilTheyStop(t *testing.T) {
	var l driver.Listeners
	var heard []string
	listen := func(who string) func() {
		return l.Listen(func(driver.Signal) { heard = append(heard, who) })
	}
	stopA := listen("a")
	stopB := listen("b")
	l.Notify(driver.Signal{})
	stopA()
	stopA() // twice is no harm
	l.Notify(driver.Signal{})
	stopB()
	l.Notify(driver.Signal{})
	if want := []string{"a", "b", "b"}; !slices.Equal(heard, want) {
		t.Errorf("%v heard, want %v", heard, want)
	}
}

// The function that Notify calls may itself listen, and stop.
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
		t.Errorf("%d after the first signal, want 1", n)
	}
	l.Notify(driver.Signal{})
	if n != 11 {
		t.Errorf("%d after the second, want 11", n)
	}
}
