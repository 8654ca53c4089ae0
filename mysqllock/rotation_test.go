package mysqllock_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// Certificates and authorities are replaced on disk while a lease is held, and while a
// claim waits.
func TestReplacedCertificatesAreUsed(t *testing.T) {
	skipIfShort(t, "it starts a server")
	t.Parallel()
	a := certtest.NewAuthority(t)
	identity := certtest.NewIdentity(t, t.TempDir(), a, "127.0.0.1")
	s := mysqltest.Start(t, "--ssl-ca="+identity.CA, "--ssl-cert="+identity.Cert, "--ssl-key="+identity.Key)
	s.Do(t, "CREATE USER certified@'%' REQUIRE X509", "GRANT ALL ON "+mysqltest.Database+".* TO certified@'%'")
	certtest.Rotate(t, a, certtest.Server{
		Identity: identity,
		Reload: func() {
			s.Do(t, "FLUSH SSL")
			s.Do(t, "KILL USER certified")
		},
		Open: func(client *certtest.Identity) driver.Driver {
			return openDriver(t, fmt.Sprintf("mysql://certified@%s/%s?ca_cert=%s&client_cert=%s&client_key=%s", s.Addr, mysqltest.Database, client.CA, client.Cert, client.Key))
		},
	})
}
