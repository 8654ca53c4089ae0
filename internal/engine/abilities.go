package engine

import "github.com/pawl-go/pawl/driver"

// Driver is a driver with the abilities of memlock's. A fake around it embeds it, and
// calls them without looking for each.
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
	return d.(Driver) //nolint:forcetypeassert // a panic shows that it is no driver of memlock
}
