package sqlitelock

import (
	"cmp"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options for a driver. The zero value and nil work.
type Options struct {
	// Retention is the time for which the file keeps the last fence of a name after its
	// last grant. After that, the next fence is still greater, unless the clock was set
	// back past that grant. The limit keeps the file small if names are used once.
	// Default: 24 hours; at least a minute.
	Retention time.Duration

	// Poll is the pause between two polls for signals if the driver receives no wake-ups
	// and one of its claims waits in a queue. After a second of waiting it polls half as
	// often. A waiter gets a released name after half of Poll on average. Default: 4 ms;
	// 1 ms to 1 s.
	Poll time.Duration

	// MustExist means that the driver does not create the file, or a database in an empty
	// file. Open then returns an error that matches fs.ErrNotExist. Set it for a program
	// that only reads. Otherwise a typo in the path creates a new file without locks.
	MustExist bool

	now func() time.Time // the clock that decides which leases have expired: time.Now, except in tests
}

func (o *Options) withDefaults() (Options, error) {
	out := *cmp.Or(o, &Options{})
	out.Retention = cmp.Or(out.Retention, 24*time.Hour)
	out.Poll = cmp.Or(out.Poll, 4*time.Millisecond)
	if out.now == nil {
		out.now = time.Now
	}
	switch {
	case out.Retention < time.Minute:
		return out, &driver.InvalidError{Argument: "retention", Problem: "is " + out.Retention.String(), Allowed: "1m or more"}
	case out.Poll < time.Millisecond || out.Poll > time.Second:
		return out, &driver.InvalidError{Argument: "poll interval", Problem: "is " + out.Poll.String(), Allowed: "1ms to 1s"}
	}
	return out, nil
}
