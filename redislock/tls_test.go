package redislock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

func TestTLSWithACertificateThatIsTrustedAndOneThatIsNot(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	port := redistest.FreePort(t)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no", "--tls-ca-cert-file", cert)
	url := "rediss://:hunter2@localhost:" + port
	_, err := redislock.Open(ctx, url)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v; want it to say that the certificate is not trusted", err)
	}
	url = "rediss://localhost:" + port
	for _, trusted := range []string{url + "?ca_cert=" + cert, url + "?skip_verify=true"} {
		d := start(t, trusted)
		c := mutex("job")
		gets(t, d, c)
		releases(t, d, c)
	}
	if _, err := redislock.Open(ctx, url+"?server_name=elsewhere&ca_cert="+cert); err == nil {
		t.Error("a certificate for another name was trusted")
	}
}

// certificate makes one that signs itself, for localhost.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	what := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, what, what, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", secret)
}
