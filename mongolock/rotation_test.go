package mongolock

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Certificates and authorities are replaced on disk while a lease is held, and while a
// claim waits. A proxy before the server requires certificates.
func TestReplacedCertificatesAreUsed(t *testing.T) {
	if realURL() != "" {
		t.Skip("PAWL_TEST_MONGODB_URL may be a replica set, which announces its own addresses")
	}
	t.Parallel()
	s := startServer(t)
	a := certtest.NewAuthority(t)
	own := certtest.NewIdentity(t, t.TempDir(), a, "127.0.0.1")
	p := startTLSProxy(t, own, s.addr)
	name := newDatabase()
	certtest.Rotate(t, a, certtest.Server{
		Identity: own,
		Reload:   p.Heal, // ends all connections
		Open: func(client *certtest.Identity) driver.Driver {
			return open(t, "mongodb://"+p.Addr+"/"+name+"?tls=true&tlsCAFile="+client.CA+"&tlsCertificateKeyFile="+client.Both+
				"&directConnection=true&serverSelectionTimeoutMS=2000")
		},
	})
}

// startTLSProxy starts a proxy that requires certificates of its clients. It reads the
// files of the identity for each connection.
func startTLSProxy(t *testing.T, own *certtest.Identity, to string) *servertest.Proxy {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
			if err != nil {
				return nil, err
			}
			pem, err := os.ReadFile(own.CA)
			clients := x509.NewCertPool()
			clients.AppendCertsFromPEM(pem)
			return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}, err
		},
	})
	noError(t, err)
	return servertest.ProxyOn(t, l, to)
}
