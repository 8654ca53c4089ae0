// Package inside has what redislock shares only with redlock. Package redislock sets the
// functions when it is initialised.
package inside

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

var (
	// OpenLazily opens the server of a URL, as redislock.Open does, without asking
	// whether it is there.
	OpenLazily func(ctx context.Context, rawURL string) (driver.Driver, error)

	// URLParameters returns the names of the parameters that a URL of redislock can have.
	URLParameters func() []string
)
