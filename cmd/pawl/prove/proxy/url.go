package proxy

import (
	"cmp"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/backends"
)

// Split returns the address of each node of a URL, or the reason why no proxy can stand
// before the nodes. The reason contains no part of the URL.
func Split(rawURL string) (targets []string, reason string) {
	l := divide(rawURL)
	return l.targets, l.reason
}

// Replace returns the URL with other addresses in place of the targets that Split
// returns, in the same order. It keeps all other bytes of the URL. If Split returns a
// reason, Replace returns the URL unchanged.
func Replace(rawURL string, addresses []string) string {
	l := divide(rawURL)
	if l.reason != "" {
		return rawURL
	}
	return l.before + strings.Join(addresses, ",") + l.after
}

// The reasons of Split.
const (
	unreadable   = "the URL cannot be read"
	misplacedAt  = "the URL has an @ after its host: write an @ in a password or a parameter as %40"
	requiresTLS  = "the URL requires TLS, and the certificate of the server does not name the proxy"
	sentinels    = "the clients of Sentinel learn from it where the server is, and would not go through the proxy"
	redisCluster = "the clients of a Redis Cluster learn from it where its nodes are, and would not go through the proxy"
	replicaSet   = "the clients of a replica set learn from it where its members are, and would not go through the proxy: " +
		"name one member, with directConnection=true"
	dnsDiscovery   = "the clients of mongodb+srv:// learn from the DNS where the servers are, and would not go through the proxy"
	sqliteFile     = "SQLite keeps the locks in a file, and there is no network to it"
	ownMemory      = "mem: keeps the locks in the memory of one process, and there is no network to it"
	noHost         = "the URL names no host, so the client connects to its default, perhaps without TCP"
	hostParameter  = "the URL names its server among the parameters: write HOST:PORT before the path"
	addrParameter  = "the URL names nodes in the parameter addr: write all of them before the path"
	unknownNetwork = "the URL names a network that is neither tcp nor unix"
	unknownScheme  = "the proxy does not know the URLs of this scheme"
)

// A location is a URL divided into the addresses of its nodes and the text around them.
type location struct {
	before, after string
	targets       []string
	reason        string // why targets is empty
}

func noTargets(reason string) location { return location{reason: reason} }

func divide(rawURL string) location {
	scheme, rest, _ := strings.Cut(rawURL, ":")
	scheme = strings.ToLower(scheme)
	backend := backends.Of(scheme)
	if slices.Contains(backend.TLS, scheme) {
		return noTargets(requiresTLS)
	}
	switch scheme {
	case "sqlite":
		return noTargets(sqliteFile)
	case "mem":
		return noTargets(ownMemory)
	case "mongodb+srv":
		return noTargets(dnsDiscovery)
	case "mysql", "mariadb":
		if !strings.HasPrefix(rest, "//") || strings.Contains(rest, ")/") {
			return divideDSN(rawURL)
		}
	}
	u, reason := parse(rawURL)
	if reason != "" {
		return noTargets(reason)
	}
	switch scheme {
	case "redis", "valkey", "redis+unix":
		return u.redis(scheme == "redis+unix")
	case "redlock":
		if u.has("addr") {
			return noTargets(addrParameter)
		}
		return u.plain("6379")
	case "postgres", "postgresql":
		return u.postgres()
	case "mysql", "mariadb":
		return u.mysql()
	case "mongodb":
		return u.mongodb()
	}
	// backends.All shows the other URLs with the default port of their clients.
	_, port, found := strings.Cut(backend.URL, "://HOST:")
	switch {
	case !found:
		return noTargets(unknownScheme)
	case u.enables("tls"):
		return noTargets(requiresTLS)
	}
	return u.plain(port)
}

// parts are the unchanged parts of a URL: before is the scheme and the user, and after is
// the path and the query.
type parts struct {
	before, hosts, after string
	path, query          string // the parts of after
	parameters           url.Values
}

// parse finds the parts. It refuses an @ behind the hosts: then the password has a /, a ?
// or a # in it, and hosts would be a part of the password.
func parse(rawURL string) (*parts, string) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return nil, unreadable
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	u := &parts{after: rest[end:]}
	begin := strings.LastIndexByte(rest[:end], '@') + 1
	u.before, u.hosts = scheme+"://"+rest[:begin], rest[begin:end]
	switch {
	case strings.Contains(u.after, "@"):
		return nil, misplacedAt
	case strings.Contains(u.after, "#"):
		return nil, unreadable
	}
	u.path, u.query, _ = strings.Cut(u.after, "?")
	var err error
	if u.parameters, err = url.ParseQuery(u.query); err != nil {
		return nil, unreadable
	}
	return u, ""
}

// has reports whether the query has one of these parameters.
func (u *parts) has(names ...string) bool {
	return slices.ContainsFunc(names, u.parameters.Has)
}

// enables reports whether a parameter is set to a value that does not mean false.
func (u *parts) enables(name string) bool {
	on, err := strconv.ParseBool(u.parameters.Get(name))
	return u.has(name) && (on || err != nil)
}

// tlsParameters are the TLS parameters of all backends.
var tlsParameters = []string{"ca_cert", "client_cert", "client_key", "server_name", "skip_verify"}

// plain divides a URL that has hosts and no special parameters.
func (u *parts) plain(port string) location {
	if u.has(tlsParameters...) {
		return noTargets(requiresTLS)
	}
	l := location{before: u.before, after: u.after}
	for host := range strings.SplitSeq(u.hosts, ",") {
		t := target(host, port)
		if t == "" || host == "" && host != u.hosts {
			return noTargets(unreadable)
		}
		l.targets = append(l.targets, t)
	}
	return l
}

// target adds the default host and port to an address, or returns "" if it is invalid.
func target(host, port string) string {
	u, err := url.Parse("tcp://" + host)
	if err != nil || u.User != nil || u.Path != "" || strings.ContainsAny(host, "()") ||
		!strings.HasPrefix(host, "[") && (strings.Count(host, ":") > 1 || strings.Contains(host, "%")) {
		return ""
	}
	return net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), port))
}

// redis replaces the path of a socket with a host, and keeps the parameters.
func (u *parts) redis(socket bool) location {
	path, err := url.PathUnescape(u.path)
	switch {
	case socket && (err != nil || u.hosts != "" || path == ""):
		return noTargets(unreadable)
	case u.has("master_set", "master_name"):
		return noTargets(sentinels)
	case strings.Contains(u.hosts, ","), u.has("addr"), u.enables("cluster"):
		return noTargets(redisCluster)
	case !socket:
		return u.plain("6379")
	case u.has(tlsParameters...):
		return noTargets(requiresTLS)
	}
	_, user, _ := strings.Cut(u.before, "://")
	return location{before: "redis://" + user, after: strings.TrimPrefix(u.after, u.path), targets: []string{"unix:" + path}}
}

func (u *parts) postgres() location {
	switch mode := u.parameters.Get("sslmode"); {
	case u.has("host", "port", "service"):
		return noTargets(hostParameter)
	case u.hosts == "":
		return noTargets(noHost)
	case mode == "require" || strings.HasPrefix(mode, "verify"):
		return noTargets(requiresTLS)
	}
	port := "5432"
	if !strings.Contains(u.hosts, ",") {
		port = cmp.Or(os.Getenv("PGPORT"), port) // pgx reads it only for a single host
	}
	return u.plain(port)
}

// mongodb ignores the case of the parameters' names, as MongoDB does.
func (u *parts) mongodb() location {
	direct, hasSet := false, false
	for name, values := range u.parameters {
		value := values[len(values)-1]
		switch name = strings.ToLower(name); {
		case name == "directconnection":
			direct = direct || value == "true"
		case name == "connect":
			direct = direct || strings.EqualFold(value, "direct")
		case name == "replicaset":
			hasSet = true
		case name != "tlsinsecure" && (strings.HasPrefix(name, "tls") || strings.HasPrefix(name, "ssl")) && value != "false":
			return noTargets(requiresTLS)
		}
	}
	switch {
	case strings.Contains(u.hosts, ","), hasSet && !direct:
		return noTargets(replicaSet)
	case u.hosts == "":
		return noTargets(noHost)
	}
	return u.plain("27017")
}
