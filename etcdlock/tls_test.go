package etcdlock_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The cluster requires a client's certificate. With a certificate everything works.
// Without one, or if the client does not trust the servers' certificate, the error
// mentions certificates.
func TestTLSWithCertificatesOfClients(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t)
	own := certtest.NewIdentity(t, t.TempDir(), a, "localhost", "127.0.0.1")
	other, otherKey := certtest.NewAuthority(t).Certify(t, "elsewhere")
	c := etcdtest.Setup{Members: 1, TLS: own}.Start(t)
	url, ownCert := c.URL()+"/tls?", "client_cert="+own.Cert+"&client_key="+own.Key
	one, two := openDriver(t, url+ownCert+"&ca_cert="+own.CA), openDriver(t, url+ownCert+"&skip_verify=true")
	servertest.RidesThrough(t, one, two, func() {})
	bad := map[string][2]string{}
	for with, want := range map[string][2]string{
		ownCert: {"certificate signed by unknown", "ca"},
		ownCert + "&server_name=else&ca_cert=" + own.CA:                           {"not else", "certificate"},
		"ca_cert=" + own.CA:                                                       {"certificate required", "cert"},
		"client_cert=" + other + "&client_key=" + otherKey + "&ca_cert=" + own.CA: {"certificate", "cert"},
	} {
		bad[url+with+"&dial_timeout=1s"] = want
	}
	bad["etcd://"+c.Addrs()[0]+"?dial_timeout=1s"] = [2]string{"preface", "etcds"}
	bad["etcds://"+etcdtest.Shared(t).Addrs()[0]+"?dial_timeout=1s"] = [2]string{"TLS handshake", "not etcds"}
	bad["etcd://u:hunter2@127.0.0.1:1?dial_timeout=1s"] = [2]string{"refused", "network"}
	var all sync.WaitGroup
	for url, want := range bad { // in parallel, because each waits for a server
		all.Go(func() { wantOpenError(t, url, want[0], want[1]) })
	}
	all.Wait()
	openDriver(t, url+ownCert+"&server_name=localhost&ca_cert="+own.CA)
}

// wantOpenError requires an error with this text and this hint. It retries, because a
// slow server may not answer in the second in which Open looks for the cause.
func wantOpenError(t *testing.T, url, text, hint string) {
	t.Helper()
	for began := time.Now(); ; {
		d, err := asDriver(etcdlock.Open(brief(t), url))
		if err == nil {
			_ = d.Close()
			t.Errorf("%s opens; want an error", url)
			return
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%v contains the password", err)
		}
		e, ok := errors.AsType[*driver.Error](err)
		if ok && strings.Contains(err.Error(), text) && strings.Contains(e.Hint, hint) {
			return
		}
		if !ok || time.Since(began) > hangTime {
			t.Errorf("%s: %v; want an error with %q and a hint with %q", url, err, text, hint)
			return
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
	c := etcdtest.Setup{Members: 1, TLS: own}.Start(t)
	certtest.Rotate(t, a, certtest.Server{
		Identity: own,
		Reload:   c.Members[0].Restart,
		Open: func(client *certtest.Identity) driver.Driver {
			return openDriver(t, c.URL()+"/tls?ca_cert="+client.CA+"&client_cert="+client.Cert+"&client_key="+client.Key)
		},
	})
}
