package redlock

import (
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const urlForm = "redlock://[USER:PASSWORD@]HOST1[:PORT],HOST2[:PORT],HOST3[:PORT][/DB], redlocks:// for TLS; 3 servers or more that share nothing"

// schemes maps each scheme of redlock to the scheme of its nodes' URLs.
var schemes = map[string]string{"redlock": "redis", "redlocks": "rediss"}

// urlParameters are the parameters of redislock that are for a single server, except
// cluster and tracking, which redlock turns off.
var urlParameters = slices.Concat(engine.TLSParameters, []string{
	"addr", "client_name", "db", "dial_timeout", "prefix", "protocol", "push", "retention", "wait_replicas", "wait_timeout", "write_timeout",
})

// nodeURLs makes a URL for each node. redislock finds the other mistakes.
func nodeURLs(u *url.URL) ([]string, error) {
	if schemes[u.Scheme] == "" {
		return nil, invalid("begins with neither redlock: nor redlocks:")
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, invalid("has a #, or no // after the scheme")
	}
	query, err := driver.URLParameters(u, "redlock URL", urlParameters, "addr")
	if err != nil {
		return nil, err
	}
	hosts := append(strings.Split(u.Host, ","), query["addr"]...)
	query.Del("addr")
	var urls, known []string
	for _, host := range hosts {
		addr, ok := engine.Address(strings.ToLower(host), "6379")
		switch bare := strings.TrimPrefix(host, "[]"); {
		case bare == "" || bare[0] == ':':
			return nil, invalid("names a host that is empty")
		case !ok:
			return nil, invalid("has a port that is not 1 to 65535")
		case slices.Contains(known, addr):
			return nil, invalid("names " + addr + " twice, which would vote twice")
		}
		known = append(known, addr)
		node := url.URL{Scheme: schemes[u.Scheme], User: u.User, Host: addr, Path: u.Path, RawQuery: query.Encode()}
		urls = append(urls, node.String())
	}
	if len(urls) < 3 {
		return nil, invalid("names fewer than 3 hosts, so it could not lose one")
	}
	return urls, nil
}

func invalid(problem string) error {
	return &driver.InvalidError{Argument: "redlock URL", Problem: problem, Allowed: urlForm}
}
