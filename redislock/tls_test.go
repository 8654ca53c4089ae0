package redislock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock"
)

func TestTLSWithACertificateThatIsTrustedAndOneThatIsNot(t *testing.T) {
	ca := certtest.NewAuthority(t)
	cert, key := ca.Certify(t, "localhost", "127.0.0.1")
	port := servertest.FreePort(t)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no", "--tls-ca-cert-file", ca.File)
	url := "rediss://:hunter2@localhost:" + port
	_, err := redislock.Open(ctx, url)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v; want an error about the certificate", err)
	}
	url = "rediss://localhost:" + port
	for _, trusted := range []string{url + "?ca_cert=" + ca.File, url + "?skip_verify=true"} {
		d := openDriver(t, trusted)
		cycle(t, d, "job")
	}
	if _, err := redislock.Open(ctx, url+"?server_name=elsewhere&ca_cert="+ca.File); err == nil {
		t.Error("a certificate for another name was trusted")
	}
}

// Each node has its own certificate for the address that the other nodes know. The
// certificate of the node in the URL has a second name.
func TestEachNodeIsVerifiedByTheAddressThatIsDialled(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	ca := certtest.NewAuthority(t)
	tlsArgs := func(hosts ...string) (port string, args []string) {
		port = servertest.FreePort(t)
		cert, key := ca.Certify(t, hosts...)
		return port, []string{
			"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.File,
			"--tls-auth-clients", "no", "--tls-cluster", "yes", "--tls-replication", "yes",
		}
	}
	countLocked := func(t *testing.T, url string) (n int, err error) {
		d := openDriver(t, url+"ca_cert="+ca.File)
		for i := range 24 {
			c := mutex(fmt.Sprint("job", i))
			if _, e := d.Acquire(ctx, c); e != nil {
				err = e
				continue
			}
			releases(t, d, c)
			n++
		}
		return n, err
	}

	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		for what, others := range map[string]string{"their own": "127.0.0.1", "an impostor's": "elsewhere"} {
			var first string
			redistest.StartClusterWith(t, 3, func(node int) []string {
				hosts := []string{others}
				if node == 0 {
					hosts = []string{"localhost", "127.0.0.1"}
				}
				port, args := tlsArgs(hosts...)
				if node == 0 {
					first = port
				}
				return args
			})
			n, err := countLocked(t, "rediss://localhost:"+first+"?cluster=true&")
			if valid := others == "127.0.0.1"; valid && n < 24 || !valid && (n == 24 || !strings.Contains(fmt.Sprint(err), "certificate")) {
				t.Errorf("the other nodes have %s certificates: %d of 24 names can be locked: %v", what, n, err)
			}
		}
	})

	t.Run("Sentinel", func(t *testing.T) {
		t.Parallel()
		master, args := tlsArgs("127.0.0.1")
		redistest.Start(t, args...)
		sentinelPort, args := tlsArgs("localhost")
		var lines []string
		for i := 0; i < len(args); i += 2 {
			if name := strings.TrimPrefix(args[i], "--"); name != "tls-cluster" {
				lines = append(lines, name+" "+args[i+1])
			}
		}
		redistest.StartSentinel(t, master, 1, lines...)
		if n, err := countLocked(t, "rediss://localhost:"+sentinelPort+"?master_set=main&"); n < 24 {
			t.Errorf("%d of 24 names can be locked: %v", n, err)
		}
	})
}

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
