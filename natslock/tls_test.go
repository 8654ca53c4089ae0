package natslock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := certtest.NewAuthority(t)
	cert, key := ca.Certify(t, "localhost")
	for scheme, config := range map[string]string{
		"nats":     "tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, timeout: 20 }",
		"nats+tls": "tls { cert_file: %q, key_file: %q, ca_file: %q, handshake_first: true, timeout: 20 }",
	} {
		server := natstest.Start(t, fmt.Sprintf(config, cert, key, ca.File))
		url := scheme + "://" + strings.Replace(server.Addr, "127.0.0.1", "localhost", 1) + "?client_cert=" + cert + "&client_key=" + key
		for _, trusted := range []string{"&ca_cert=" + ca.File, "&skip_verify=true"} {
			d := openDriver(t, url+trusted)
			cycle(t, d, "job")
		}
		for _, untrusted := range []string{"", "&server_name=elsewhere&ca_cert=" + ca.File} {
			until(t, scheme, func() error { // a slow server does not answer in time
				d, err := natslock.Open(ctx, url+untrusted)
				if err == nil {
					_ = d.Close()
					t.Errorf("%s: Open trusts the certificate with %q; want an error", scheme, untrusted)
				} else if !strings.Contains(err.Error(), "certificate") {
					return fmt.Errorf("%w; want an error about the certificate", err)
				}
				return nil
			})
		}
	}
}

// Certificates and authorities are replaced on disk while a lease is held, and while a
// claim waits.
func TestReplacedCertificatesAreUsed(t *testing.T) {
	skipIfShort(t, "a server starts again twice")
	t.Parallel()
	a := certtest.NewAuthority(t)
	own := certtest.NewIdentity(t, t.TempDir(), a, "127.0.0.1")
	server := natstest.Start(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, timeout: 20 }", own.Cert, own.Key, own.CA))
	certtest.Rotate(t, a, certtest.Server{
		Identity: own,
		Reload:   server.Restart,
		Open: func(client *certtest.Identity) driver.Driver {
			return openDriver(t, "nats://"+server.Addr+"?ca_cert="+client.CA+"&client_cert="+client.Cert+"&client_key="+client.Key)
		},
	})
}
