package drivertest_test

import "github.com/pawl-go/pawl/driver"

// A watched driver has its Watch replaced.
type watched struct {
	*faulty
	watch func(d *faulty, name string, f func()) (stop func())
}

func (w *watched) Watch(name string, f func()) (stop func()) { return w.watch(w.faulty, name, f) }

var watchFaults = []fault{{
	name:  "changes are not told",
	wants: []string{"Watch/EachChangeIsTold"},
	driver: func(d *faulty) driver.Driver {
		return &watched{d, func(*faulty, string, func()) func() { return func() {} }}
	},
}, {
	name:  "a watch is told of another name",
	wants: []string{"Watch/OtherNamesAreNotTold"},
	driver: func(d *faulty) driver.Driver {
		return &watched{d, func(d *faulty, name string, f func()) func() {
			one, two := d.Watch(name, f), d.Watch(name+"/other", f)
			return func() { one(); two() }
		}}
	},
}, {
	name:  "a watch does not stop",
	wants: []string{"Watch/AWatchThatWasStoppedIsNotTold"},
	driver: func(d *faulty) driver.Driver {
		return &watched{d, func(d *faulty, name string, f func()) func() {
			d.Watch(name, f)
			return func() {}
		}}
	},
}}
