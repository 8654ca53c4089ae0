package mongolock

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/ocsp"
)

var tlsFiles = []string{"tlsCAFile", "tlsCertificateKeyFile", "tlsCertificateFile", "tlsPrivateKeyFile"}

// A dialer reads the files of the URL again for the TLS of each connection. MongoDB's
// client reads them once.
type dialer struct {
	url        string                     // a URL with only the parameters of TLS
	lastConfig atomic.Pointer[tls.Config] // the last valid content of the files

	revocation *ocsp.VerifyOptions // nil if the dialer does not check for revoked certificates
}

// rereadFiles gives the client a dialer if the URL names files. It also removes the
// client's TLS configuration, because the client would otherwise begin TLS a second time.
func rereadFiles(client *options.ClientOptions, query url.Values) {
	if client.TLSConfig == nil || !slices.ContainsFunc(tlsFiles, query.Has) {
		return
	}
	own := url.Values{"tls": {"true"}}
	for name := range query {
		if strings.HasPrefix(name, "tls") && name != "tls" {
			own[name] = query[name]
		}
	}
	d := &dialer{url: "mongodb://localhost/?" + own.Encode()}
	d.lastConfig.Store(client.TLSConfig)
	if disabled := client.DisableCertificateRevocationCheck; disabled == nil || !*disabled {
		d.revocation = &ocsp.VerifyOptions{Cache: ocsp.NewCache(), HTTPClient: client.HTTPClient}
		if disabled := client.DisableOCSPEndpointCheck; disabled != nil {
			d.revocation.DisableEndpointChecking = *disabled
		}
	}
	client.SetDialer(d)
	client.TLSConfig = nil
}

// DialContext implements [options.ContextDialer].
func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	now := options.Client().ApplyURI(d.url)
	if now.Validate() == nil && now.TLSConfig != nil { // if not, another program may be writing the files
		d.lastConfig.Store(now.TLSConfig)
	}
	secure := tls.Dialer{Config: d.lastConfig.Load()}
	conn, err := secure.DialContext(ctx, network, addr)
	if err != nil || d.revocation == nil || secure.Config.InsecureSkipVerify {
		return conn, err
	}
	state := conn.(*tls.Conn).ConnectionState() //nolint:forcetypeassert // tls.Dialer promises the type
	if err := ocsp.Verify(ctx, state, d.revocation); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
