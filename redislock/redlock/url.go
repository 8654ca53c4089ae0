package redlock

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/redislock/internal/inside"
)

const urlForm = "redlock://[USER:PASSWORD@]HOST1[:PORT],HOST2[:PORT],HOST3[:PORT][/DB], redlocks:// for TLS; 3 servers or more that share nothing"

// schemes maps each scheme of redlock to the scheme of its nodes' URLs.
var schemes = map[string]string{"redlock": "redis", "redlocks": "rediss"}

// unsupportedParameters are parameters of redislock that are not for a single server, or
// that redlock sets itself.
var unsupportedParameters = []string{"cluster", "master_name", "master_set", "sentinel_password", "sentinel_username", "tracking"}

// split makes a URL for each node. redislock finds the other mistakes.
func split(u *url.URL) ([]string, error) {
	if u.Opaque != "" || u.Fragment != "" {
		return nil, invalid("has no // after the scheme, or a # in it")
	}
	ours := slices.Clone(inside.URLParameters)
	ours = slices.DeleteFunc(ours, func(name string) bool { return slices.Contains(unsupportedParameters, name) })
	query, err := driver.URLParameters(u, "redlock URL", ours, "addr")
	if err != nil {
		return nil, err
	}
	hosts := append(strings.Split(u.Host, ","), query["addr"]...)
	query.Del("addr")
	var urls, known []string
	for _, host := range hosts {
		at := address(host)
		switch {
		case strings.HasPrefix(at, ":"):
			return nil, invalid("names a host that is empty")
		case slices.Contains(known, at):
			return nil, invalid("names " + at + " twice, which would vote twice")
		}
		known = append(known, at)
		node := url.URL{Scheme: schemes[u.Scheme], User: u.User, Host: at, Path: u.Path, RawQuery: query.Encode()}
		urls = append(urls, node.String())
	}
	if len(urls) < 3 {
		return nil, invalid("names fewer than 3 hosts, and could not lose one")
	}
	return urls, nil
}

// address returns host:port in a form that can be compared.
func address(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), ""
	}
	port = cmp.Or(port, "6379")
	return net.JoinHostPort(strings.ToLower(host), port)
}

func invalid(problem string) error {
	return &driver.InvalidError{What: "redlock URL", Problem: problem, Allowed: urlForm}
}
