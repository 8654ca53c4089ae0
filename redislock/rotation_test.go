package redislock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Certificates and authorities are replaced on disk while a lease is held, and while a
// claim waits.
func TestReplacedCertificatesAreUsed(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t)
	own := certtest.NewIdentity(t, t.TempDir(), a, "localhost", "127.0.0.1")
	port := servertest.FreePort(t)
	server := redistest.Start(t, "--tls-port", port, "--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--tls-auth-clients", "yes", "--tls-ca-cert-file", own.CA)
	certtest.Rotate(t, a, certtest.Server{
		Identity: own,
		Reload: func() {
			server.Do("CONFIG", "SET", "tls-cert-file", own.Cert, "tls-key-file", own.Key, "tls-ca-cert-file", own.CA)
			for _, kind := range []string{"normal", "pubsub"} {
				server.Do("CLIENT", "KILL", "TYPE", kind)
			}
		},
		Open: func(client *certtest.Identity) driver.Driver {
			return openDriver(t, "rediss://127.0.0.1:"+port+"?ca_cert="+client.CA+"&client_cert="+client.Cert+"&client_key="+client.Key)
		},
	})
}
