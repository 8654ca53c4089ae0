//go:build !linux && !darwin

package sqlitelock

import "github.com/pawl-go/pawl/driver"

// filesystem finds nothing, because this system has no way to tell.
func filesystem(string) []driver.Finding { return nil }
