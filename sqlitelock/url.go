package sqlitelock

import (
	"net/url"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/driver"
)

const urlForm = "sqlite:/absolute/path, sqlite:relative/path or sqlite:///absolute/path, " +
	"optionally with ?retention=DURATION, &poll=DURATION and &create=false; in the path write ?, # and % as %3F, %23 and %25"

func parseURL(u *url.URL) (path string, o *Options, err error) {
	invalid := func(problem string) error {
		return &driver.InvalidError{Argument: "sqlite URL", Problem: problem, Allowed: urlForm}
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
		return "", nil, invalid("has a host; after sqlite:// the path must begin with a /")
	case u.Fragment != "":
		return "", nil, invalid("has a #")
	case path == "":
		return "", nil, invalid("has no path")
	}

	query, err := driver.URLParameters(u, "sqlite URL", []string{"create", "poll", "retention"})
	if err != nil {
		return "", nil, err
	}
	o = &Options{}
	for key := range query {
		v, allowed := query.Get(key), "true, false"
		switch key {
		case "create":
			var create bool
			create, err = strconv.ParseBool(v)
			o.MustExist = !create
		case "poll":
			allowed = "a duration, like 10ms"
			o.Poll, err = duration(v)
		case "retention":
			allowed = "a duration, like 24h"
			o.Retention, err = duration(v)
		}
		if err != nil {
			return "", nil, &driver.InvalidError{Argument: "sqlite URL", Problem: "has a " + key + " that cannot be read", Allowed: allowed}
		}
	}
	return path, o, nil
}

// duration parses a duration, and refuses 0, which would mean the default.
func duration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if d == 0 {
		err = strconv.ErrRange
	}
	return d, err
}
