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
		t.Skip("PAWL_TEST_MONGODB_URL may name a replica set, which names its members itself")
	}
	t.Parallel()
	s := serve(t)
	a := certtest.NewAuthority(t)
	own := certtest.NewIdentity(t, t.TempDir(), a, "127.0.0.1")
	p := secure(t, own, s.addr)
	name := database()
	certtest.Rotate(t, a, certtest.Server{
		Identity: own,
		Reload:   p.Heal, // ends all connections
		Open: func(client *certtest.Identity) driver.Driver {
			return open(t, "mongodb://"+p.Addr+"/"+name+"?tls=true&tlsCAFile="+client.CA+"&tlsCertificateKeyFile="+client.Both+
				"&directConnection=true&serverSelectionTimeoutMS=2000")
		},
	})
}

// secure starts a proxy that requires certificates of its clients, by the files of an
// identity as they are at each connection.
func secure(t *testing.T, own *certtest.Identity, to string) *servertest.Proxy {
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
