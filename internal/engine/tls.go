package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"strconv"

	"github.com/pawl-go/pawl/driver"
)

// TLSParameters are the names of the URL parameters that configure TLS. They are the same
// for all backends, except where the engine's client reads the URL.
var TLSParameters = []string{"ca_cert", "client_cert", "client_key", "server_name", "skip_verify"}

// TLSConfig makes the configuration that the [TLSParameters] of a query describe, or nil
// without any of them. what begins its errors, which are [*driver.InvalidError]: "etcd
// URL".
func TLSConfig(query url.Values, what string) (*tls.Config, error) {
	config, found := NewTLSConfig(), false
	for _, name := range TLSParameters {
		found = found || query.Has(name)
	}
	if !found {
		return nil, nil //nolint:nilnil // there are no parameters
	}
	invalid := func(problem, allowed string) error {
		return &driver.InvalidError{What: what, Problem: problem, Allowed: allowed}
	}
	config.ServerName = query.Get("server_name")
	if query.Has("skip_verify") {
		v := query.Get("skip_verify")
		on, err := strconv.ParseBool(v)
		if err != nil && v != "" {
			return nil, invalid("has skip_verify that is neither true nor false", "true, false")
		}
		config.InsecureSkipVerify = on || v == ""
	}
	if query.Has("ca_cert") {
		path := query.Get("ca_cert")
		pem, err := os.ReadFile(path)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalid("has ca_cert="+strconv.Quote(path)+", which cannot be read or has no certificate", "a PEM file")
		}
	}
	if query.Has("client_cert") != query.Has("client_key") {
		return nil, invalid("has client_cert without client_key, or the other way round", "both, or none")
	}
	if query.Has("client_cert") {
		pair, err := tls.LoadX509KeyPair(query.Get("client_cert"), query.Get("client_key"))
		if path, ok := errors.AsType[*os.PathError](err); ok {
			return nil, invalid("has client_cert and client_key, and "+strconv.Quote(path.Path)+" cannot be read", "two PEM files")
		}
		if err != nil {
			return nil, invalid("has client_cert and client_key, which are no certificate and its key", "two PEM files")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// NewTLSConfig is the configuration of TLS without any parameter.
func NewTLSConfig() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
