package etcdlock

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl/driver"
)

const urlForm = "etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PREFIX], etcds:// for TLS"

// parsed is what a URL says.
type parsed struct {
	config    clientv3.Config
	own       Options
	cert, key string
}

// settings are those of a client that is opened for a driver. It says nothing by itself:
// errors are returned. It notices within ten seconds that a server is gone that has not
// hung up.
func settings() clientv3.Config {
	return clientv3.Config{
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 6 * time.Second, DialKeepAliveTimeout: 4 * time.Second,
		Logger: zap.NewNop(),
	}
}

// parseURL says of what it cannot read only the name: a value may be a password.
func parseURL(u *url.URL) (*clientv3.Config, *Options, error) {
	p := &parsed{config: settings()}
	query, err := driver.URLParameters(u, "etcd URL", slices.Collect(maps.Keys(parameters)))
	if err != nil {
		return nil, nil, err // before anything else of it is taken for what it may not be
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
		scheme, p.config.TLS = "https://", &tls.Config{MinVersion: tls.VersionTLS12}
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
		if err := parameters[name](p, query.Get(name)); err != nil {
			return nil, nil, err
		}
	}
	if err := p.certificate(); err != nil {
		return nil, nil, err
	}
	p.named()
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
	"ca": func(p *parsed, path string) error {
		pem, err := os.ReadFile(path)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			return invalid("has ca=" + strconv.Quote(path) + ", which cannot be read or has no certificate")
		}
		return p.tls(func(c *tls.Config) { c.RootCAs = pool })
	},
	"cert": func(p *parsed, path string) error { p.cert = path; return p.tls(func(*tls.Config) {}) },
	"key":  func(p *parsed, path string) error { p.key = path; return p.tls(func(*tls.Config) {}) },
	"server_name": func(p *parsed, v string) error {
		return p.tls(func(c *tls.Config) { c.ServerName = v })
	},
	"skip_verify": func(p *parsed, v string) error {
		on, err := strconv.ParseBool(v)
		if err != nil && v != "" {
			return invalid("has skip_verify that is neither true nor false")
		}
		return p.tls(func(c *tls.Config) { c.InsecureSkipVerify = on || v == "" })
	},
}

// tls sets something that only an etcds URL can have.
func (p *parsed) tls(set func(c *tls.Config)) error {
	if p.config.TLS == nil {
		return invalid("has parameters of TLS, and does not begin with etcds")
	}
	set(p.config.TLS)
	return nil
}

// named makes the name count that the servers' certificates are to have: the client of
// etcd wants their addresses in them, whatever ServerName says (v3.7.3).
func (p *parsed) named() {
	c := p.config.TLS
	if c == nil || c.ServerName == "" || c.InsecureSkipVerify {
		return
	}
	name, roots := c.ServerName, c.RootCAs
	c.InsecureSkipVerify = true // for it is verified here
	c.VerifyConnection = func(s tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, one := range s.PeerCertificates[1:] {
			others.AddCert(one)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: others})
		return err
	}
}

// certificate loads the client's own.
func (p *parsed) certificate() error {
	if p.cert == "" && p.key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		if path, ok := errors.AsType[*os.PathError](err); ok {
			return invalid("has cert and key, and " + strconv.Quote(path.Path) + " cannot be read")
		}
		return invalid("has cert and key, which are no certificate and its key")
	}
	p.config.TLS.Certificates = []tls.Certificate{pair}
	return nil
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
