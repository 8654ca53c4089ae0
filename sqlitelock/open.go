package sqlitelock

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/driver"
)

const urlForm = "sqlite:/absolute/path, sqlite:relative/path or sqlite:///absolute/path, " +
	"with ?retention=DURATION, &poll=DURATION and &create=false if need be; a ?, # or % of the path as %3F, %23, %25"

// The URL is sqlite:PATH, absolute or relative to the working directory. Its parameters are those of [Options];
// create=false is MustExist.
func init() {
	driver.Register("sqlite", func(ctx context.Context, u *url.URL) (driver.Driver, error) {
		path, o, err := parseURL(u)
		if err != nil {
			return nil, err
		}
		d, err := Open(ctx, path, o)
		if err != nil {
			return nil, err // not d: a nil *Driver would be no nil driver.Driver
		}
		return d, nil
	})
}

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
		// sqlite://locks.db is a common slip for sqlite:locks.db.
		return "", nil, invalid("has a host; after two slashes, a third begins the path")
	case u.Fragment != "":
		return "", nil, invalid("has a #")
	case path == "":
		return "", nil, invalid("has no path")
	}

	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", nil, invalid("has parameters that cannot be read")
	}
	o = &Options{}
	known := map[string]func(v string) error{
		"retention": duration(&o.Retention), "poll": duration(&o.Poll),
		"create": func(v string) error {
			create, err := strconv.ParseBool(v)
			o.MustExist = !create
			return err
		},
	}
	for key, values := range query {
		set, ok := known[key]
		if !ok {
			return "", nil, invalid("has the unknown parameter " + quote(key))
		}
		v := slices.Max(values)
		if err := set(v); err != nil || len(values) > 1 {
			return "", nil, invalid("has " + key + "=" + quote(v))
		}
	}
	return path, o, nil
}

// duration reads one that is not 0: that would be the default.
func duration(d *time.Duration) func(string) error {
	return func(v string) (err error) {
		if *d, err = time.ParseDuration(v); err == nil && *d == 0 {
			err = strconv.ErrRange
		}
		return err
	}
}
