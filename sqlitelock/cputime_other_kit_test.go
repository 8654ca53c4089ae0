//go:build !unix

package sqlitelock

import "time"

func cpuTime() time.Duration { return 0 }
