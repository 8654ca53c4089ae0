package engine

import "github.com/pawl-go/pawl/driver"

// Driver is a driver with all abilities of memlock. A fake around a memlock driver embeds
// a Driver, and so gets all abilities.
type Driver interface {
	driver.Driver
	driver.Signaler
	driver.Watcher
	driver.Lister
	driver.LeaseBreaker
	driver.FenceRaiser
	driver.AllAcquirer
}

// Full returns d, which has all of these abilities.
func Full(d driver.Driver) Driver {
	return d.(Driver) //nolint:forcetypeassert // panics for any other driver than memlock's
}
