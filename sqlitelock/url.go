package sqlitelock

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/driver"
)

const urlForm = "sqlite:/absolute/path, sqlite:relative/path or sqlite:///absolute/path, " +
	"with ?retention=DURATION, &poll=DURATION and &create=false if need be; a ?, # or % of the path as %3F, %23, %25"

func parseURL(u *url.URL) (path string, o *Options, err error) {
	invalid := func(problem string) error {
		return &driver.InvalidError{What: "sqlite URL", Problem: problem, Allowed: urlForm}
	}
	path = u.Path
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return "", nil, invalid("has a path that cannot be unescaped")
		}
	}
	switch {
	case u.Host != "" || u.User != nil:
		// sqlite://locks.db is a common mistake for sqlite:locks.db.
		return "", nil, invalid("has a host; after two slashes, a third begins the path")
	case u.Fragment != "":
		return "", nil, invalid("has a #")
	case path == "":
		return "", nil, invalid("has no path")
	}

	o = &Options{}
	type parameter struct {
		set     func(v string) error
		allowed string
	}
	known := map[string]parameter{
		"retention": {duration(&o.Retention), "a duration, like 24h"},
		"poll":      {duration(&o.Poll), "a duration, like 10ms"},
		"create": {func(v string) error {
			create, err := strconv.ParseBool(v)
			o.MustExist = !create
			return err
		}, "true, false"},
	}
	query, err := driver.URLParameters(u, "sqlite URL", slices.Collect(maps.Keys(known)))
	if err != nil {
		return "", nil, err
	}
	for key := range query {
		if known[key].set(query.Get(key)) != nil {
			return "", nil, &driver.InvalidError{
				What: "sqlite URL", Problem: "has a " + key + " that cannot be read", Allowed: known[key].allowed,
			}
		}
	}
	return path, o, nil
}

// duration parses a duration, and refuses 0, which would mean the default.
func duration(d *time.Duration) func(string) error {
	return func(v string) (err error) {
		if *d, err = time.ParseDuration(v); err == nil && *d == 0 {
			err = strconv.ErrRange
		}
		return err
	}
}
