package etcdlock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// A cluster that requires certificates of its clients: with one everything works. Without
// one, or if the servers' certificate is not trusted, the error says that it is about
// certificates.
func TestTLSWithCertificatesOfClients(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t, "localhost")
	other, otherKey := certificate(t, "elsewhere")
	c := etcdtest.Setup{Members: 1, Cert: cert, Key: key}.Start(t)
	url, mine := c.URL()+"/tls?", "client_cert="+cert+"&client_key="+key
	a, b := start(t, url+mine+"&ca_cert="+cert), start(t, url+mine+"&skip_verify=true")
	holder, waiter := mutex("job"), queued(mutex("job"))
	first := gets(t, a, holder)
	refused(t, b, waiter)
	heard := hears(t, b, waiter.Token)
	keeps(t, a, holder)
	releases(t, a, holder)
	hearsOfGrant(t, heard)
	if g := gets(t, b, waiter); g.Fence <= first.Fence {
		t.Errorf("fence %d after %d", g.Fence, first.Fence)
	}
	bad := map[string][2]string{}
	for with, want := range map[string][2]string{
		mine: {"certificate signed by unknown", "ca"},
		mine + "&server_name=else&ca_cert=" + cert: {"not else", "certificate"},
		"ca_cert=" + cert:                          {"certificate required", "cert"},
		"client_cert=" + other + "&client_key=" + otherKey + "&ca_cert=" + cert: {"certificate", "cert"},
	} {
		bad[url+with+"&dial_timeout=1s"] = want
	}
	bad["etcd://"+c.Addrs()[0]+"?dial_timeout=1s"] = [2]string{"preface", "etcds"}
	bad["etcds://"+etcdtest.Shared(t).Addrs()[0]+"?dial_timeout=1s"] = [2]string{"TLS handshake", "not etcds"}
	bad["etcd://u:hunter2@127.0.0.1:1?dial_timeout=1s"] = [2]string{"refused", "network"}
	var all sync.WaitGroup
	for url, want := range bad { // side by side, because each waits for a server
		all.Go(func() { isNotOpened(t, url, want[0], want[1]) })
	}
	all.Wait()
	start(t, url+mine+"&server_name=localhost&ca_cert="+cert)
}

// isNotOpened wants an error with this text and this hint. A server that is slow does not
// answer in the second that Open has to find the reason, so it tries again.
func isNotOpened(t *testing.T, url, says, hints string) {
	t.Helper()
	for began := time.Now(); ; {
		d, err := etcdlock.Open(brief(t), url)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s is opened", url)
			return
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%v has the password", err)
		}
		e, ok := errors.AsType[*driver.Error](err)
		if ok && strings.Contains(err.Error(), says) && strings.Contains(e.Hint, hints) {
			return
		}
		if !ok || time.Since(began) > hang {
			t.Errorf("%s: %v; want it to say %q, and to hint at %q", url, err, says, hints)
			return
		}
	}
}

// certificate makes a self-signed certificate, for a server of that name, and for
// clients.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	what := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
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
