package drivertest_test

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// renamer is a driver that stores each name as another.
type renamer struct {
	*faulty
	to func(string) string
}

func (r renamer) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if driver.ValidateName(c.Name) == nil {
		c.Name = r.to(c.Name)
	}
	return r.Driver.Acquire(ctx, c)
}

func (r renamer) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	leases = append([]driver.LeaseRef(nil), leases...)
	for i := range leases {
		if driver.ValidateName(leases[i].Name) == nil {
			leases[i].Name = r.to(leases[i].Name)
		}
	}
	return r.Driver.Renew(ctx, leases)
}

func (r renamer) Release(ctx context.Context, l driver.LeaseRef) error {
	if driver.ValidateName(l.Name) == nil {
		l.Name = r.to(l.Name)
	}
	return r.Driver.Release(ctx, l)
}

func (r renamer) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if driver.ValidateName(name) != nil {
		return r.Driver.Inspect(ctx, name)
	}
	e, err := r.Driver.Inspect(ctx, r.to(name))
	e.Name = name
	return e, err
}

func (r renamer) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	if driver.ValidateName(name) == nil {
		name = r.to(name)
	}
	return r.Driver.Break(ctx, name, fence, delay, by)
}

func storeAs(to func(string) string) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return renamer{d, to} }
}

var nameFaults = []fault{{
	name: "case is folded", mustFail: []string{"Names/AreComparedByteForByte"},
	driver: storeAs(strings.ToLower),
}, {
	name: "trailing spaces are dropped", mustFail: []string{"Names/AreComparedByteForByte"},
	driver: storeAs(func(s string) string {
		return strings.TrimRight(s, " ") + strings.Repeat(" ", min(1, len(s)-len(strings.TrimLeft(s, " "))))
	}),
}, {
	name: "names are normalised", mustFail: []string{"Names/AreComparedByteForByte"},
	driver: storeAs(func(s string) string { return strings.ReplaceAll(s, "e\u0301", "\u00e9") }),
}, {
	name: "the hash tag is the name", mustFail: []string{"Names/AreComparedByteForByte"},
	driver: storeAs(func(s string) string {
		if _, after, ok := strings.Cut(s, "{"); ok {
			if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
				return tag
			}
		}
		return s
	}),
}, {
	name: "names are cut off", mustFail: []string{"Names/MayHave255Bytes"},
	driver: storeAs(func(s string) string { return strings.ToValidUTF8(s[:min(len(s), 250)], "") }),
}, {
	name: "names are paths", mustFail: []string{"Names/AreComparedByteForByte"},
	driver: storeAs(func(s string) string { return strings.ReplaceAll(s, "//", "/") }),
}, {
	name: "names of a session are in an encoding of its own", mustFail: []string{"Sessions/Session1SeesTheNamesOfTheOthers", "Sessions/ManyNamesAtOnceAreTheSameNames"},
	session: storeAs(func(s string) string {
		latin1 := make([]rune, len(s))
		for i := range len(s) {
			latin1[i] = rune(s[i])
		}
		return string(latin1)
	}),
}, {
	name: "bad names are mended", mustFail: []string{"Invalid/NamesAreRefused"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if driver.ValidateName(c.Name) != nil {
			c.Name = "mended" + string(c.Token[:1])
			if c.Name = strings.ToValidUTF8(c.Name, "x"); driver.ValidateName(c.Name) != nil {
				c.Name = "mended"
			}
			c.Force = true
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "bad claims are mended", mustFail: []string{"Invalid/ClaimsAreRefusedAndLeaveNothing", "Invalid/ClaimsAreRefusedAlikeWhileTheNameIsHeld"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		c.TTL = min(max(c.TTL, driver.MinTTL), driver.MaxTTL)
		return d.Acquire(ctx, c)
	}),
}, {
	name: "a bad claim is refused as held", mustFail: []string{"Invalid/ClaimsAreRefusedAlikeWhileTheNameIsHeld"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if c.Validate() != nil && len(d.stored(c.Name).Holders) > 0 {
			return driver.Grant{}, &driver.HeldError{Name: c.Name}
		}
		return d.Acquire(ctx, c)
	}),
}}
