package driver

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// encodingAdvice is shown when a URL may contain characters that must be percent-encoded.
const encodingAdvice = "user, password and parameters percent-encoded: %40 for @, %3A for :, %2F for /, %3F for ?, %23 for #, %25 for %"

// ParseURL is url.Parse for a URL that may contain a password. Its error, an
// [*InvalidError], shows at most the scheme of the URL, and says how to write a password.
// The URL may have several hosts with commas between them, each with or without a port.
// An IPv6 address must be in brackets, because its last part could be a port.
func ParseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		if u := parseHosts(rawURL); u != nil {
			return u, nil
		}
		// A *url.Error repeats the whole URL, and with it the password. So only its cause
		// is shown.
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		problem, allowed := "cannot be parsed: "+err.Error(), "scheme://..."
		if strings.Contains(problem, `"`) { // the cause may quote a part of the URL, such as what it took for the port
			problem = "cannot be parsed"
		}
		if strings.Contains(rawURL, "@") {
			allowed += ", with " + encodingAdvice
		}
		return nil, invalid("URL", problem, allowed)
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if strings.Count(host, ":") > 1 && strings.Trim(host, "0123456789abcdefABCDEF:.") == "" {
			// The error does not quote the address, because a password may look like one.
			return nil, invalid("URL", "has an IPv6 address without brackets", u.Scheme+"://[ADDRESS]:PORT")
		}
	}
	return u, nil
}

// parseHosts parses a URL of several hosts, or returns nil. url.Parse takes them for one
// host, and the text after the first colon for its port.
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
// known. Only the names in repeatable may occur more than once. Each error begins with
// the text of what, such as "redis URL".
//
// Its errors are [*InvalidError], and show no part of a password. A password that is not
// percent-encoded may contain a /, a ? or a #. Then url.Parse takes a part of the
// password for the host, the path or a parameter, and the @ comes after it. So
// URLParameters refuses a URL that has an @ behind its host. A password that is a
// parameter and contains an & looks like two parameters. So no error quotes an unknown
// parameter that follows another one.
func URLParameters(u *url.URL, what string, known []string, repeatable ...string) (url.Values, error) {
	if u.Host != "" && strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return nil, invalid(what, "has an @ after its host", encodingAdvice)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid(what, "has parameters that cannot be read", "NAME=VALUE&NAME=VALUE, percent-encoded")
	}
	lastKnown := ""
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(pair, "=")
		name, _ := url.QueryUnescape(key) // ParseQuery has already read it, so it is valid
		switch {
		case pair == "":
		case slices.Contains(known, name):
			if lastKnown = name; len(values[name]) > 1 && !slices.Contains(repeatable, name) {
				return nil, invalid(what, "has the parameter "+name+" twice", "once")
			}
		case len(known) == 0:
			return nil, invalid(what, "has parameters", "none")
		case knownSynonym(name, known) != "":
			return nil, invalid(what, "has a TLS parameter under an unknown name", knownSynonym(name, known))
		case lastKnown != "":
			return nil, invalid(what, "has an unknown parameter behind "+lastKnown, sorted(known)+"; %26 for an & in a value")
		case strings.Contains(u.RawQuery, "@"):
			return nil, invalid(what, "has an unknown parameter", sorted(known))
		default:
			return nil, invalid(what, "has the unknown parameter "+strconv.QuoteToGraphic(name), sorted(known))
		}
	}
	return values, nil
}

// tlsSynonyms lists the names of each TLS parameter: first ours, then the names in URLs
// that libpq or MongoDB reads itself, then names that people try.
var tlsSynonyms = [][]string{
	{"ca_cert", "sslrootcert", "tlsCAFile", "ca", "cacert", "cafile", "ca_file", "tls_ca", "tls_ca_cert", "tls_ca_file", "sslca", "ssl_ca", "ssl_ca_certs"},
	{"client_cert", "sslcert", "tlsCertificateKeyFile", "cert", "certfile", "cert_file", "tls_cert", "tls_cert_file", "ssl_cert", "ssl_certfile"},
	{"client_key", "sslkey", "tlsPrivateKeyFile", "key", "keyfile", "key_file", "tls_key", "tls_key_file", "ssl_key", "ssl_keyfile"},
	{"server_name", "servername", "sni", "tls_server_name"},
	{"skip_verify", "sslmode", "tlsInsecure", "insecure", "tls_insecure", "tls_skip_verify", "insecure_skip_verify"},
}

// knownSynonym returns the parameter in known that means the same as name, or "".
func knownSynonym(name string, known []string) string {
	for _, same := range tlsSynonyms {
		i := slices.IndexFunc(same, func(other string) bool { return slices.Contains(known, other) })
		if i >= 0 && slices.Contains(same, name) {
			return same[i]
		}
	}
	return ""
}

func sorted(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ", ") }

// schemeIsSafeToShow reports whether an error may show the scheme of a URL. In
// user:password@host the "scheme" is the user, and in password@host:port it is the
// password.
func schemeIsSafeToShow(rawURL string) bool {
	_, rest, _ := strings.Cut(rawURL, ":")
	return strings.HasPrefix(rest, "//") || !strings.Contains(rawURL, "@")
}
