//go:build !unix

package sqlitelock

import (
	"os"

	"github.com/pawl-go/pawl/driver"
)

func shared(string, os.FileInfo) []driver.Finding { return nil }
