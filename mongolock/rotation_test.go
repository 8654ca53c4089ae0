package mongolock

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
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
		Reload:   p.cut,
		Open: func(client *certtest.Identity) driver.Driver {
			return open(t, "mongodb://"+p.l.Addr().String()+"/"+name+"?tls=true&tlsCAFile="+client.CA+"&tlsCertificateKeyFile="+client.Both+
				"&directConnection=true&serverSelectionTimeoutMS=2000")
		},
	})
}

// A tlsProxy requires certificates of its clients, by the files of an identity as they
// are at each connection.
type tlsProxy struct {
	l net.Listener

	mu    sync.Mutex // protects conns
	conns []net.Conn
}

func secure(t *testing.T, own *certtest.Identity, to string) *tlsProxy {
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
	if err != nil {
		t.Fatal(err)
	}
	p := &tlsProxy{l: l}
	var loops sync.WaitGroup
	loops.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				loops.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = pair[0].Close(), pair[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		loops.Wait()
	})
	return p
}

// cut ends all connections.
func (p *tlsProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
