package proxy

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// worksWithoutTLS reports whether a connection with these parameters works without TLS.
func worksWithoutTLS(parameters url.Values) bool {
	if slices.ContainsFunc(tlsParameters, parameters.Has) {
		return false
	}
	switch parameters.Get("tls") {
	case "", "false", "preferred": // preferred verifies no certificate
		return true
	}
	return false
}

// mysql divides a URL with // after its scheme. The parameter socket replaces the host.
func (u *parts) mysql() location {
	socket := u.parameters.Get("socket")
	switch {
	case !worksWithoutTLS(u.parameters):
		return noTargets(requiresTLS)
	case strings.Contains(u.hosts, ","):
		return noTargets(unreadable)
	case socket == "":
		return u.plain("3306")
	}
	l := location{before: u.before, after: u.path, targets: []string{"unix:" + socket}}
	separator := "?"
	for pair := range strings.SplitSeq(u.query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if name, _ := url.QueryUnescape(key); name != "socket" {
			l.after += separator + pair
			separator = "&"
		}
	}
	return l
}

// divideDSN divides mysql:USER:PASSWORD@NET(ADDRESS)/DATABASE, the form of go-sql-driver.
// The password is not percent-encoded there and may contain / and @. So the separators
// are the last / and the last @ before it.
func divideDSN(rawURL string) location {
	scheme, rest, _ := strings.Cut(rawURL, ":")
	end := strings.LastIndexByte(rest, '/')
	if end < 0 {
		return noTargets(unreadable)
	}
	_, query, _ := strings.Cut(rest[end:], "?")
	parameters, err := url.ParseQuery(query)
	switch {
	case err != nil:
		return noTargets(unreadable)
	case !worksWithoutTLS(parameters):
		return noTargets(requiresTLS)
	}
	begin := strings.LastIndexByte(rest[:end], '@') + 1
	if begin == 0 && strings.HasPrefix(rest[:end], "//") {
		begin = len("//")
	}
	network, address, found := strings.Cut(rest[begin:end], "(")
	address, closed := strings.CutSuffix(address, ")")
	if found != closed {
		return noTargets(unreadable)
	}
	l := location{before: scheme + ":" + rest[:begin] + "tcp(", after: ")" + rest[end:]}
	switch network {
	case "", "tcp":
		if address == "" {
			address = "127.0.0.1"
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), "3306")
		}
	case "unix":
		if address == "" {
			address = "/tmp/mysql.sock"
		}
		address = "unix:" + address
	default:
		return noTargets(unknownNetwork)
	}
	l.targets = []string{address}
	return l
}
