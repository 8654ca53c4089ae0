package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// TLSParameters are the names of the URL parameters that configure TLS. They are the same
// for all backends, except those whose client library reads the URL.
var TLSParameters = []string{"ca_cert", "client_cert", "client_key", "server_name", "skip_verify"}

// A TLS is the configuration of TLS in a URL. Its files may be replaced while a client
// runs: each new connection uses their present content. While the files are invalid,
// maybe because another program is writing them, it uses their last valid content.
type TLS struct {
	config        *tls.Config // without the content of the files
	ca, cert, key string      // the files, or empty

	mu    sync.Mutex // protects the last valid content of the files
	roots *x509.CertPool
	pair  *tls.Certificate
}

// NewTLS returns the configuration of TLS without any parameter.
func NewTLS() *TLS { return &TLS{config: &tls.Config{MinVersion: tls.VersionTLS12}} }

// ParseTLS makes the configuration that the [TLSParameters] of a query describe, or nil
// without any of them. Its errors are of type [*driver.InvalidError]; argument is
// their field Argument, such as "etcd URL".
func ParseTLS(query url.Values, argument string) (*TLS, error) {
	t, found := NewTLS(), false
	for _, name := range TLSParameters {
		found = found || query.Has(name)
	}
	if !found {
		return nil, nil //nolint:nilnil // there are no parameters
	}
	invalid := func(problem, allowed string) error {
		return &driver.InvalidError{Argument: argument, Problem: problem, Allowed: allowed}
	}
	t.config.ServerName = query.Get("server_name")
	if query.Has("skip_verify") {
		v := query.Get("skip_verify")
		on, err := strconv.ParseBool(v)
		if err != nil && v != "" {
			return nil, invalid("has skip_verify that is neither true nor false", "true, false")
		}
		t.config.InsecureSkipVerify = on || v == ""
	}
	if query.Has("ca_cert") {
		t.ca = query.Get("ca_cert")
		if t.Roots() == nil {
			return nil, invalid("has ca_cert="+quoteFile(t.ca)+", which cannot be read or has no certificate", "a PEM file")
		}
	}
	if query.Has("client_cert") != query.Has("client_key") {
		return nil, invalid("has client_cert without client_key, or the other way round", "both, or none")
	}
	if query.Has("client_cert") {
		t.cert, t.key = query.Get("client_cert"), query.Get("client_key")
		_, err := t.certificate()
		if path, ok := errors.AsType[*os.PathError](err); ok {
			return nil, invalid("has client_cert and client_key, and "+quoteFile(path.Path)+" cannot be read", "two PEM files")
		}
		if err != nil {
			return nil, invalid("has client_cert and client_key, which are no certificate and its key", "two PEM files")
		}
		t.config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.certificate() }
	}
	return t, nil
}

// quoteFile quotes the name of a file. It hides a key or certificate in place of a name.
func quoteFile(name string) string {
	if strings.Contains(name, "-----BEGIN") {
		return "(the text of a PEM file)"
	}
	return strconv.Quote(name)
}

// Config returns the configuration for one connection, or nil if t is nil.
func (t *TLS) Config() *tls.Config {
	if t == nil {
		return nil
	}
	config := t.config.Clone()
	config.RootCAs = t.Roots()
	return config
}

// Roots returns the certificate authorities to trust, or nil for those of the machine.
func (t *TLS) Roots() *x509.CertPool {
	if t.ca == "" {
		return nil
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(t.ca)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && roots.AppendCertsFromPEM(pem) {
		t.roots = roots
	}
	return t.roots
}

// certificate returns the client's certificate, from the last valid content of the files.
// It fails only if the files never were valid.
func (t *TLS) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.pair = &pair
	}
	if t.pair != nil {
		err = nil
	}
	return t.pair, err
}
