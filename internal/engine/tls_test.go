package engine

import (
	"bytes"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/certtest"
)

func TestParseTLSReadsItsParameters(t *testing.T) {
	if c, err := ParseTLS(url.Values{"retention": {"1h"}}, "test URL"); c != nil || err != nil {
		t.Errorf("without any: %v, %v", c, err)
	}
	c, err := ParseTLS(url.Values{"server_name": {"a"}, "skip_verify": {""}}, "test URL")
	if o := c.Config(); err != nil || o.ServerName != "a" || !o.InsecureSkipVerify || o.MinVersion == 0 {
		t.Errorf("the configuration is %+v, %v", o, err)
	}
	if c, err := ParseTLS(url.Values{"skip_verify": {"false"}}, "test URL"); err != nil || c == nil || c.Config().InsecureSkipVerify {
		t.Errorf("skip_verify=false: %+v, %v", c, err)
	}
}

func TestParseTLSRefusesInvalidParameters(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	basictest.NoError(t, os.WriteFile(empty, nil, 0o600))
	for raw, want := range map[string]string{
		"skip_verify=s3cret":                            "skip_verify",
		"ca_cert=/nowhere":                              "/nowhere",
		"ca_cert=" + empty:                              "no certificate",
		"client_cert=a":                                 "without client_key",
		"client_key=a":                                  "without client_key",
		"client_cert=/nowhere&client_key=/nowhere":      "/nowhere",
		"client_cert=" + empty + "&client_key=" + empty: "no certificate and its key",
		"client_cert=" + empty + "&client_key=-----BEGIN+s3cret": "the text of a PEM file",
	} {
		query, err := url.ParseQuery(raw)
		basictest.NoError(t, err)
		_, err = ParseTLS(query, "test URL")
		invalid, ok := errors.AsType[*driver.InvalidError](err)
		if !ok || !strings.Contains(err.Error(), want) || invalid.Allowed == "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", raw, err, want)
		}
	}
}

// Another program may be writing the files while a client connects.
func TestInvalidTLSFilesDoNotReplaceTheirLastContent(t *testing.T) {
	client := certtest.NewIdentity(t, t.TempDir(), certtest.NewAuthority(t), "client")
	c, err := ParseTLS(url.Values{"ca_cert": {client.CA}, "client_cert": {client.Cert}, "client_key": {client.Key}}, "test URL")
	basictest.NoError(t, err)
	content := func() (*x509.CertPool, []byte) {
		config := c.Config()
		cert, err := config.GetClientCertificate(nil)
		basictest.NoError(t, err)
		return config.RootCAs, cert.Certificate[0]
	}
	roots, cert := content()
	for _, file := range []string{client.CA, client.Cert, client.Key} {
		basictest.NoError(t, os.WriteFile(file, []byte("half"), 0o600))
	}
	if r, c := content(); !r.Equal(roots) || !bytes.Equal(c, cert) {
		t.Error("invalid files replaced the last valid content")
	}
	client.Replace(t, certtest.NewAuthority(t))
	if r, c := content(); r.Equal(roots) || bytes.Equal(c, cert) {
		t.Error("new valid files did not replace the old content")
	}
}
