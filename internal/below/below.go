// Package below has the driver below a client, for packages of this module that build on
// both. Users of a client have no use for it: what they changed there the client would
// not know of.
package below

import "github.com/pawl-go/pawl/driver"

// Driver returns the driver of a *pawl.Client, which takes names as they are stored.
// Package pawl sets it.
var Driver func(client any) driver.Driver
