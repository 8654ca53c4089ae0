// Package inside has what redislock tells redlock only. Package redislock sets the
// functions when it is initialised.
package inside

import (
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
)

var (
	// Script is what a driver of redislock sends its scripts with.
	Script func(d driver.Driver) *redisscript.Driver

	// URLParameters are the names of the parameters that a URL of redislock can have.
	URLParameters func() []string
)
