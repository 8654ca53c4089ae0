// Package certtest makes TLS certificates for tests, and replaces them during use.
package certtest

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
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// TB has the methods of testing.TB that this package uses.
type TB = servertest.TB

// An Authority signs certificates.
type Authority struct {
	File string // the path of its own certificate

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// NewAuthority makes an authority.
func NewAuthority(tb TB) *Authority {
	tb.Helper()
	a := &Authority{File: filepath.Join(tb.TempDir(), "ca.pem"), key: newKey(tb)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem = pemBlock("CERTIFICATE", a.sign(tb, a.cert, a.key))
	replaceFile(tb, a.File, a.pem)
	return a
}

// Certify makes a certificate for a server or a client on these hosts, and its key.
func (a *Authority) Certify(tb TB, hosts ...string) (cert, key string) {
	tb.Helper()
	i := NewIdentity(tb, tb.TempDir(), a, hosts...)
	return i.Cert, i.Key
}

func (a *Authority) sign(tb TB, template *x509.Certificate, private *ecdsa.PrivateKey) []byte {
	tb.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	basictest.NoError(tb, err)
	return signed
}

// An Identity has the TLS files of a server or a client.
type Identity struct {
	CA, Cert, Key string // the paths of the trusted authority, the own certificate, and its key
	Both          string // the path of a file with Cert and Key

	hosts []string
}

// NewIdentity makes an identity for these hosts in a folder.
func NewIdentity(tb TB, dir string, a *Authority, hosts ...string) *Identity {
	tb.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	i := &Identity{CA: in("ca.pem"), Cert: in("cert.pem"), Key: in("key.pem"), Both: in("both.pem"), hosts: hosts}
	i.Replace(tb, a)
	return i
}

// Replace replaces the files by new ones that an authority signed, as tools that renew
// certificates do.
func (i *Identity) Replace(tb TB, a *Authority) {
	tb.Helper()
	i.replace(tb, a, time.Now().Add(24*time.Hour))
}

// Expire replaces the files by ones with an expired certificate.
func (i *Identity) Expire(tb TB, a *Authority) {
	tb.Helper()
	i.replace(tb, a, time.Now().Add(-time.Hour))
}

func (i *Identity) replace(tb TB, a *Authority, end time.Time) {
	tb.Helper()
	private := newKey(tb)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	basictest.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "node"}, NotBefore: end.Add(-24 * time.Hour).Add(-time.Minute), NotAfter: end,
	}
	for _, h := range i.hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	basictest.NoError(tb, err)
	own, key := pemBlock("CERTIFICATE", a.sign(tb, template, private)), pemBlock("PRIVATE KEY", secret)
	replaceFile(tb, i.CA, a.pem)
	replaceFile(tb, i.Cert, own)
	replaceFile(tb, i.Key, key)
	replaceFile(tb, i.Both, append(own, key...))
}

func pemBlock(kind string, b []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
}

// replaceFile replaces a file in one step.
func replaceFile(tb TB, path string, b []byte) {
	tb.Helper()
	err := os.WriteFile(path+".new", b, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	basictest.NoError(tb, err)
}

func newKey(tb TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	basictest.NoError(tb, err)
	return key
}
