//go:build !linux && !darwin

package sqlitelock

import "github.com/pawl-go/pawl/driver"

// filesystem returns no finding, because this system does not report the kind of
// filesystem.
func filesystem(string) []driver.Finding { return nil }
