package natslock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for scheme, config := range map[string]string{
		"nats":     "tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, timeout: 20 }",
		"nats+tls": "tls { cert_file: %q, key_file: %q, ca_file: %q, handshake_first: true, timeout: 20 }",
	} {
		server := natstest.Start(t, fmt.Sprintf(config, cert, key, cert))
		url := scheme + "://" + strings.Replace(server.Addr, "127.0.0.1", "localhost", 1) + "?client_cert=" + cert + "&client_key=" + key
		for _, trusted := range []string{"&ca_cert=" + cert, "&skip_verify=true"} {
			d := start(t, url+trusted)
			c := mutex("job")
			gets(t, d, c)
			releases(t, d, c)
		}
		for _, untrusted := range []string{"", "&server_name=elsewhere&ca_cert=" + cert} {
			soon(t, scheme, func(context.Context) error { // a slow server does not answer in time
				d, err := natslock.Open(ctx, url+untrusted)
				if err == nil {
					_ = d.Close()
					t.Errorf("%s: a certificate is trusted that is not to be trusted: %q", scheme, untrusted)
				} else if !strings.Contains(err.Error(), "certificate") {
					return fmt.Errorf("%w; want it to say that it is about the certificate", err)
				}
				return nil
			})
		}
	}
}

// certificate makes a self-signed certificate, for localhost, and for clients.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	what := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, what, what, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", secret)
}
