package redisscript

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Diagnose implements driver.Doctor.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	return nil, nil
}
