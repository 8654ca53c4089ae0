package etcdlock

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const urlForm = "etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PREFIX], etcds:// for TLS"

// parsed is the content of a URL.
type parsed struct {
	config clientv3.Config
	own    Options
}

// settings are the settings of a client that is opened for a driver. It logs nothing:
// errors are returned. It notices within ten seconds that a server is gone without
// closing its connection.
func settings() clientv3.Config {
	return clientv3.Config{
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 6 * time.Second, DialKeepAliveTimeout: 4 * time.Second,
		Logger: zap.NewNop(),
	}
}

// parseURL reads a URL. For what it cannot read, its error has only the name of the
// parameter, because the value may be a password.
func parseURL(u *url.URL) (*clientv3.Config, *Options, error) {
	p := &parsed{config: settings()}
	query, err := driver.URLParameters(u, "etcd URL", slices.Concat(slices.Collect(maps.Keys(parameters)), engine.TLSParameters))
	if err != nil {
		return nil, nil, err // before any other part of it is misread
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, nil, invalid("has no // after the scheme, or a # in it")
	}
	if u.User != nil {
		p.config.Username = u.User.Username()
		p.config.Password, _ = u.User.Password()
		if p.config.Username == "" || p.config.Password == "" {
			return nil, nil, invalid("has a user without a password, or a password without a user")
		}
	}
	scheme := "http://"
	if u.Scheme == "etcds" {
		scheme, p.config.TLS = "https://", engine.NewTLSConfig()
	}
	switch config, err := engine.TLSConfig(query, "etcd URL"); {
	case err != nil:
		return nil, nil, err
	case config != nil && p.config.TLS == nil:
		return nil, nil, invalid("has parameters of TLS, and does not begin with etcds")
	case config != nil:
		p.config.TLS = config
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		host, err := address(host)
		if err != nil {
			return nil, nil, err
		}
		p.config.Endpoints = append(p.config.Endpoints, scheme+host)
	}
	p.own.Prefix = strings.Trim(u.Path, "/")
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(engine.TLSParameters, name) {
			continue
		}
		if err := parameters[name](p, query.Get(name)); err != nil {
			return nil, nil, err
		}
	}
	p.verifyServerName()
	if _, err := p.own.complete(); err != nil {
		return nil, nil, err
	}
	return &p.config, &p.own, nil
}

func address(hostport string) (string, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), "2379"
	}
	host = cmp.Or(host, "localhost")
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", invalid("has a port that cannot be: 1 to 65535 can")
	}
	return net.JoinHostPort(host, port), nil
}

var parameters = map[string]func(p *parsed, v string) error{
	"dial_timeout": func(p *parsed, v string) error { return duration(&p.config.DialTimeout, "dial_timeout", v) },
	"retention":    func(p *parsed, v string) error { return duration(&p.own.Retention, "retention", v) },
}

// verifyServerName makes server_name the name in the servers' certificates: the client of
// etcd requires their addresses there, whatever ServerName says (v3.7.3).
func (p *parsed) verifyServerName() {
	c := p.config.TLS
	if c == nil || c.ServerName == "" || c.InsecureSkipVerify {
		return
	}
	name, roots := c.ServerName, c.RootCAs
	c.InsecureSkipVerify = true // VerifyConnection verifies it
	c.VerifyConnection = func(s tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, one := range s.PeerCertificates[1:] {
			others.AddCert(one)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: others})
		return err
	}
}

func duration(at *time.Duration, name, v string) (err error) {
	if *at, err = time.ParseDuration(v); err != nil || *at <= 0 {
		return invalid("has " + name + " that is no duration")
	}
	return nil
}

func invalid(problem string) error {
	return &driver.InvalidError{What: "etcd URL", Problem: problem, Allowed: urlForm}
}
