package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/pawl-go/pawl/internal/engine"
)

// handshakes are credentials that read the files of the URL again for each connection.
// gRPC's own credentials do not. gRPC's own also require each server's address in its
// certificate, even if ServerName is set (v1.83.2). handshakes then require ServerName.
//
// handshakes also keep the error of the last failed connection, because a request that
// waits for a connection does not return that error.
type handshakes struct {
	credentials.TransportCredentials
	tls  *engine.TLS
	last atomic.Pointer[error]
}

func newHandshakes(t *engine.TLS) *handshakes {
	return &handshakes{TransportCredentials: credentials.NewTLS(t.Config()), tls: t}
}

// ClientHandshake implements [credentials.TransportCredentials].
func (h *handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config := h.tls.Config()
	c, info, err := credentials.NewTLS(config).ClientHandshake(ctx, cmp.Or(config.ServerName, authority), raw)
	if errors.Is(err, io.EOF) {
		err = errors.New("the server hung up at the TLS handshake")
	}
	if err != nil {
		h.last.Store(&err)
		return nil, nil, err
	}
	return &shaken{Conn: c, of: h}, info, nil
}

// Clone implements [credentials.TransportCredentials].
func (h *handshakes) Clone() credentials.TransportCredentials { return h }

// lastError returns the error of the last connection that failed, or nil.
func (h *handshakes) lastError() error {
	if h == nil || h.last.Load() == nil {
		return nil
	}
	return *h.last.Load()
}

// A shaken connection has passed its handshake. A server that refuses the client's
// certificate reports this only after the handshake, in place of its first answer.
type shaken struct {
	net.Conn
	of    *handshakes
	heard bool // whether the server has answered; only the goroutine that reads uses it
}

func (c *shaken) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.heard {
		if c.heard = n > 0; c.heard {
			c.of.last.Store(nil)
		} else if err != nil {
			c.of.last.Store(&err)
		}
	}
	return n, err
}
