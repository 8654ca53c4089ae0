package engine

import (
	"net/url"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// ReadBool reads a parameter of a URL into to, if the URL has it. Its error is a
// [*driver.InvalidError]; argument is its field Argument, such as "mysql URL".
func ReadBool(query url.Values, argument, name string, to *bool) (err error) {
	if !query.Has(name) {
		return nil
	}
	if *to, err = strconv.ParseBool(query.Get(name)); err != nil {
		return unreadable(argument, name, "true, false")
	}
	return nil
}

// ReadDuration is [ReadBool] for a duration, such as the example. It refuses 0, which
// would mean the default.
func ReadDuration(query url.Values, argument, name, example string, to *time.Duration) (err error) {
	if !query.Has(name) {
		return nil
	}
	if *to, err = time.ParseDuration(query.Get(name)); err != nil || *to == 0 {
		return unreadable(argument, name, "a duration, like "+example)
	}
	return nil
}

// unreadable returns an error without the value, which may be a part of a password.
func unreadable(argument, name, allowed string) error {
	return &driver.InvalidError{Argument: argument, Problem: "has a " + name + " that cannot be read", Allowed: allowed}
}
