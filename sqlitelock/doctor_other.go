//go:build !linux && !darwin

package sqlitelock

import "github.com/pawl-go/pawl/driver"

// filesystem returns no finding: on this system Pawl does not ask for the kind of
// filesystem.
func filesystem(string) []driver.Finding { return nil }
