package etcdlock

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const urlForm = "etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PREFIX], etcds:// for TLS"

type parsedURL struct {
	config  clientv3.Config
	tls     *tlsCredentials // nil without TLS
	options Options
}

// settings returns the settings of a client that the driver opens. The client logs
// nothing, because it returns errors. It detects within ten seconds that a server is gone
// without closing its connection.
func settings() clientv3.Config {
	return clientv3.Config{
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 6 * time.Second, DialKeepAliveTimeout: 4 * time.Second,
		Logger: zap.NewNop(),
	}
}

// parseURL reads a URL. An error about a parameter has only its name, because the value
// may be a password.
func parseURL(u *url.URL) (*parsedURL, error) {
	p := &parsedURL{config: settings()}
	query, err := driver.URLParameters(u, "etcd URL", slices.Concat(slices.Collect(maps.Keys(parameters)), engine.TLSParameters))
	if err != nil {
		return nil, err // first, because a password that is not encoded also distorts other parts
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, invalid("has a #, or no // after the scheme")
	}
	if u.User != nil {
		p.config.Username = u.User.Username()
		p.config.Password, _ = u.User.Password()
		if p.config.Username == "" || p.config.Password == "" {
			return nil, invalid("has a user without a password, or a password without a user")
		}
	}
	scheme := "http://"
	switch t, err := engine.ParseTLS(query, "etcd URL"); {
	case err != nil:
		return nil, err
	case u.Scheme == "etcds":
		scheme = "https://"
		t = cmp.Or(t, engine.NewTLS())
		p.tls = &tlsCredentials{TransportCredentials: credentials.NewTLS(t.Config()), tls: t}
		p.config.TLS = t.Config()
		p.config.DialOptions = append(p.config.DialOptions, grpc.WithTransportCredentials(p.tls))
	case t != nil:
		return nil, invalid("has parameters for TLS, but does not begin with etcds")
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		host, ok := engine.Address(host, "2379")
		if !ok {
			return nil, invalid("has a port that is not 1 to 65535")
		}
		p.config.Endpoints = append(p.config.Endpoints, scheme+host)
	}
	p.options.Prefix = strings.Trim(u.Path, "/")
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if set := parameters[name]; set != nil { // engine.ParseTLS has set the others
			if err := set(p, query.Get(name)); err != nil {
				return nil, err
			}
		}
	}
	if p.options, err = p.options.withDefaults(); err != nil {
		return nil, err
	}
	return p, nil
}

var parameters = map[string]func(p *parsedURL, v string) error{
	"dial_timeout": func(p *parsedURL, v string) error { return setDuration(&p.config.DialTimeout, "dial_timeout", v) },
	"retention":    func(p *parsedURL, v string) error { return setDuration(&p.options.Retention, "retention", v) },
}

func setDuration(to *time.Duration, name, v string) (err error) {
	if *to, err = time.ParseDuration(v); err != nil || *to <= 0 {
		return invalid("has a " + name + " that is not a positive duration")
	}
	return nil
}

func invalid(problem string) error {
	return &driver.InvalidError{Argument: "etcd URL", Problem: problem, Allowed: urlForm}
}
