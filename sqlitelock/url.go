package sqlitelock

import (
	"cmp"
	"net/url"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const (
	urlArgument = "sqlite URL"
	urlForm     = "sqlite:/absolute/path, sqlite:relative/path or sqlite:///absolute/path, " +
		"optionally with ?retention=DURATION, &poll=DURATION and &create=false; in the path write ?, # and % as %3F, %23 and %25"
)

func parseURL(u *url.URL) (path string, o *Options, err error) {
	invalid := func(problem string) error {
		return &driver.InvalidError{Argument: urlArgument, Problem: problem, Allowed: urlForm}
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

	query, err := driver.URLParameters(u, urlArgument, []string{"create", "poll", "retention"})
	if err != nil {
		return "", nil, err
	}
	o, create := &Options{}, true
	err = cmp.Or(
		engine.ReadBool(query, urlArgument, "create", &create),
		engine.ReadDuration(query, urlArgument, "poll", "10ms", &o.Poll),
		engine.ReadDuration(query, urlArgument, "retention", "24h", &o.Retention),
	)
	o.MustExist = !create
	return path, o, err
}
