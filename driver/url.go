package driver

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// encoding says how what has a meaning in a URL is written where it shall have none.
const encoding = "user, password and parameters percent-encoded: %40 for @, %3A for :, %2F for /, %3F for ?, %23 for #, %25 for %"

// ParseURL is url.Parse for a URL that may have a password in it: its error, an
// [*InvalidError], shows no part of the URL, and says how a password has to be written.
// It may have several hosts with commas between them, each with a port or without.
func ParseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		if u := parseHosts(rawURL); u != nil {
			return u, nil
		}
		// A *url.Error repeats the whole URL, and with it the password: only its cause is
		// shown.
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		problem, allowed := "cannot be parsed: "+err.Error(), "scheme://..."
		if strings.Contains(problem, `"`) { // the cause may quote a part of it: what it took for the port, say
			problem = "cannot be parsed"
		}
		if strings.Contains(rawURL, "@") {
			allowed += ", with " + encoding
		}
		return nil, invalid("URL", problem, allowed)
	}
	return u, nil
}

// parseHosts parses a URL of several hosts, or returns nil. To url.Parse they are one
// host, whose port it takes to be what follows a colon, of the others, too.
func parseHosts(rawURL string) *url.URL {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	begin := strings.LastIndexByte(rest[:end], '@') + 1
	hosts := rest[begin:end]
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse("x://" + host)
		if err != nil || host == "" || u.Host != host || host[0] != '[' && strings.Count(host, ":") > 1 {
			return nil
		}
	}
	u, err := url.Parse(scheme + "://" + rest[:begin] + "host" + rest[end:])
	if err != nil {
		return nil
	}
	u.Host = hosts
	return u
}

// URLParameters reads the parameters of a URL for a backend that knows the names in
// known, of which only those in repeatable may be there more than once. What begins the
// errors: "redis URL".
//
// They are [*InvalidError], and quote no part of what stands before an @. A password that
// is not percent-encoded may have a /, a ? or a # in it: what is then taken for the host,
// the path or a parameter is a part of the password, and the @ comes after it. So a URL
// that has a host, and an @ behind it, is refused. Nor do they quote a parameter behind
// another one: with an & in it, a password that is a parameter looks like two.
func URLParameters(u *url.URL, what string, known []string, repeatable ...string) (url.Values, error) {
	if u.Host != "" && strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return nil, invalid(what, "has an @ after its host", encoding)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid(what, "has parameters that cannot be read", "NAME=VALUE&NAME=VALUE, percent-encoded")
	}
	before := ""
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(pair, "=")
		name, _ := url.QueryUnescape(key) // ParseQuery has read it
		switch {
		case pair == "":
		case slices.Contains(known, name):
			if before = name; len(values[name]) > 1 && !slices.Contains(repeatable, name) {
				return nil, invalid(what, "has the parameter "+name+" twice", "once")
			}
		case len(known) == 0:
			return nil, invalid(what, "has parameters", "none")
		case meant(name, known) != "":
			return nil, invalid(what, "has a parameter of TLS by a name that is not known", meant(name, known))
		case before != "":
			return nil, invalid(what, "has an unknown parameter behind "+before, inOrder(known)+"; %26 for an & in a value")
		case strings.Contains(u.RawQuery, "@"):
			return nil, invalid(what, "has an unknown parameter", inOrder(known))
		default:
			return nil, invalid(what, "has the unknown parameter "+strconv.QuoteToGraphic(name), inOrder(known))
		}
	}
	return values, nil
}

// sameForTLS are the names that parameters of TLS have in URLs: ours, then those of
// libpq and of MongoDB, which read their own URLs, then those that people try.
var sameForTLS = [][]string{
	{"ca_cert", "sslrootcert", "tlsCAFile", "ca", "cacert", "cafile", "ca_file", "tls_ca", "tls_ca_cert", "tls_ca_file", "sslca", "ssl_ca", "ssl_ca_certs"},
	{"client_cert", "sslcert", "tlsCertificateKeyFile", "cert", "certfile", "cert_file", "tls_cert", "tls_cert_file", "ssl_cert", "ssl_certfile"},
	{"client_key", "sslkey", "tlsPrivateKeyFile", "key", "keyfile", "key_file", "tls_key", "tls_key_file", "ssl_key", "ssl_keyfile"},
	{"server_name", "servername", "sni", "tls_server_name"},
	{"skip_verify", "sslmode", "tlsInsecure", "insecure", "tls_insecure", "tls_skip_verify", "insecure_skip_verify"},
}

// meant is the parameter among known that is what name is elsewhere, or empty.
func meant(name string, known []string) string {
	for _, same := range sameForTLS {
		if !slices.Contains(same, name) {
			continue
		}
		for _, other := range same {
			if slices.Contains(known, other) {
				return other
			}
		}
	}
	return ""
}

func inOrder(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ", ") }

// sayable reports whether the scheme of a URL can be shown. In user:password@host it is
// the user, or in password@host:port no scheme at all.
func sayable(rawURL string) bool {
	_, rest, _ := strings.Cut(rawURL, ":")
	return strings.HasPrefix(rest, "//") || !strings.Contains(rawURL, "@")
}
