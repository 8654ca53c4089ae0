package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// refusing is a driver that calls a function of the test during each release.
type refusing struct {
	driver.Driver
	during func()
}

func (r *refusing) Release(ctx context.Context, l driver.LeaseRef) error {
	r.during()
	return r.Driver.Release(ctx, l)
}
