package redislock

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
)

const urlForm = "redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss:// for TLS, redis+unix:///PATH for a socket; " +
	"redis://HOST1,HOST2:PORT or &addr=HOST:PORT for a cluster; the same with &master_set=NAME for Sentinel"

type parsedURL struct {
	client       rueidis.ClientOption
	network      string   // "tcp" or "unix"
	hosts        []string // HOST or HOST:PORT
	tls          *engine.TLS
	options      Options
	connectLater bool   // open without a connection; each step tries to connect
	hasDB        bool   // the URL names a database
	location     string // for errors: without the user and the password

	untrackedReason string // why there is no tracking; empty with tracking
}

// parseURL reads the forms of URLs that rueidis and go-redis read. An error about a
// parameter has only its name, because the value may be a password.
func parseURL(u *url.URL) (*parsedURL, error) {
	p := &parsedURL{client: settings(), network: "tcp"}
	query, err := driver.URLParameters(u, "redis URL", slices.Concat(slices.Collect(maps.Keys(parameters)), engine.TLSParameters), "addr")
	if err != nil {
		return nil, err // first, because a password that is not encoded also distorts other parts
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, invalid("has a #, or no // after the scheme")
	}
	if u.User != nil {
		p.client.Username = u.User.Username()
		p.client.Password, _ = u.User.Password()
	}
	secure := u.Scheme == "rediss" || u.Scheme == "valkeys"
	if p.tls, err = engine.ParseTLS(query, "redis URL"); err != nil {
		return nil, err
	}
	if secure && p.tls == nil {
		p.tls = engine.NewTLS()
	}
	p.client.TLSConfig = p.tls.Config()
	if u.Scheme == "redis+unix" {
		if u.Host != "" || u.Path == "" {
			return nil, invalid("has no socket path, which begins with three slashes")
		}
		p.network, p.client.InitAddress = "unix", []string{u.Path}
	} else {
		p.hosts = strings.Split(u.Host, ",")
		if db := strings.Trim(u.Path, "/"); db != "" {
			if err := p.setDB(db); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(engine.TLSParameters, key) {
			continue
		}
		for _, v := range query[key] {
			if err := parameters[key](p, v); err != nil {
				return nil, err
			}
		}
	}
	return p, p.finish(secure)
}

// finish checks and sets fields that depend on several parts of the URL.
func (p *parsedURL) finish(secure bool) error {
	port := "6379"
	if p.client.Sentinel.MasterSet != "" {
		port = "26379"
	}
	for _, host := range p.hosts {
		addr, ok := engine.Address(host, port)
		if !ok {
			return invalid("has a port that is not 1 to 65535")
		}
		p.client.InitAddress = append(p.client.InitAddress, addr)
	}
	if !secure && p.tls != nil {
		return invalid("has parameters for TLS, but does not begin with rediss")
	}
	if len(p.client.InitAddress) > 1 && p.client.SelectDB != 0 && p.client.Sentinel.MasterSet == "" {
		return invalid("has a database number, but a cluster has no databases")
	}
	if p.options.WaitReplicas > 0 {
		p.client.BlockingPoolSize = 64 // the number of grants that may wait for replicas at the same time
	}
	p.client.Sentinel.TLSConfig = p.client.TLSConfig
	p.client.Sentinel.Dialer = p.client.Dialer
	p.location = strings.Join(p.client.InitAddress, ",")
	if p.client.Sentinel.MasterSet != "" {
		p.location = p.client.Sentinel.MasterSet + " of " + p.location
	}
	p.location = redisscript.DescribeDatabase(p.location, p.client.SelectDB)
	return nil
}

func (p *parsedURL) setDB(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return invalid("has a database that is not a number")
	}
	if p.hasDB && n != p.client.SelectDB {
		return invalid("has two databases, behind the host and as db")
	}
	p.client.SelectDB, p.hasDB = n, true
	return nil
}

// parameters has a function for each parameter, which sets its value. rueidis, go-redis
// and redis-py use the same names.
var parameters = map[string]func(*parsedURL, string) error{
	"addr":              func(p *parsedURL, v string) error { p.hosts = append(p.hosts, v); return nil },
	"db":                (*parsedURL).setDB,
	"client_name":       text(func(p *parsedURL) *string { return &p.client.ClientName }),
	"dial_timeout":      duration("dial_timeout", func(p *parsedURL) *time.Duration { return &p.client.Dialer.Timeout }),
	"write_timeout":     duration("write_timeout", func(p *parsedURL) *time.Duration { return &p.client.ConnWriteTimeout }),
	"master_set":        text(func(p *parsedURL) *string { return &p.client.Sentinel.MasterSet }),
	"master_name":       text(func(p *parsedURL) *string { return &p.client.Sentinel.MasterSet }),
	"sentinel_username": text(func(p *parsedURL) *string { return &p.client.Sentinel.Username }),
	"sentinel_password": text(func(p *parsedURL) *string { return &p.client.Sentinel.Password }),
	"cluster":           boolean("cluster", func(p *parsedURL, on bool) { p.client.ForceSingleClient = !on }),
	"protocol": func(p *parsedURL, v string) error {
		if v != "2" && v != "3" {
			return invalid("has a protocol that is neither 2 nor 3")
		}
		if p.client.AlwaysRESP2 = v == "2"; p.client.AlwaysRESP2 {
			p.untrackedReason = "protocol=2 does not support it"
		}
		return nil
	},
	"prefix":    text(func(p *parsedURL) *string { return &p.options.Prefix }),
	"retention": duration("retention", func(p *parsedURL) *time.Duration { return &p.options.Retention }),
	"push":      boolean("push", func(p *parsedURL, on bool) { p.options.NoPush = !on }),
	"wait_replicas": func(p *parsedURL, v string) (err error) {
		if p.options.WaitReplicas, err = strconv.Atoi(v); err != nil || p.options.WaitReplicas < 0 {
			return invalid("has wait_replicas that is not a number")
		}
		return nil
	},
	"wait_timeout": duration("wait_timeout", func(p *parsedURL) *time.Duration { return &p.options.WaitTimeout }),
	"tracking": boolean("tracking", func(p *parsedURL, on bool) {
		if !on {
			p.untrackedReason = "tracking=false"
		}
	}),
}

func text(field func(p *parsedURL) *string) func(*parsedURL, string) error {
	return func(p *parsedURL, v string) error { *field(p) = v; return nil }
}

func duration(key string, field func(p *parsedURL) *time.Duration) func(*parsedURL, string) error {
	return func(p *parsedURL, v string) (err error) {
		if n, e := strconv.Atoi(v); e == nil { // go-redis reads a number without a unit as seconds
			v = strconv.Itoa(n) + "s"
		}
		if *field(p), err = time.ParseDuration(v); err != nil || *field(p) <= 0 {
			return invalid("has a " + key + " that is not a positive duration")
		}
		return nil
	}
}

func boolean(key string, set func(p *parsedURL, on bool)) func(*parsedURL, string) error {
	return func(p *parsedURL, v string) error {
		on, err := strconv.ParseBool(v)
		if err != nil && v != "" {
			return invalid("has " + key + " that is neither true nor false")
		}
		set(p, on || v == "")
		return nil
	}
}
