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

// tlsCredentials read the files of the URL again for each connection, unlike gRPC's own
// credentials. If ServerName is set, they require that name in the servers' certificates;
// gRPC's own (v1.83.2) require each server's address.
//
// They also store the error of the last failed connection, because a request that
// waits for a connection does not return it.
type tlsCredentials struct {
	credentials.TransportCredentials
	tls     *engine.TLS
	lastErr atomic.Pointer[error]
}

// ClientHandshake implements [credentials.TransportCredentials].
func (h *tlsCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config := h.tls.Config()
	c, info, err := credentials.NewTLS(config).ClientHandshake(ctx, cmp.Or(config.ServerName, authority), raw)
	if errors.Is(err, io.EOF) {
		err = errors.New("the server hung up at the TLS handshake")
	}
	if err != nil {
		h.lastErr.Store(&err)
		return nil, nil, err
	}
	return &checkedConn{Conn: c, credentials: h}, info, nil
}

// Clone implements [credentials.TransportCredentials].
func (h *tlsCredentials) Clone() credentials.TransportCredentials { return h }

// lastError returns the error of the last connection that failed, or nil.
func (h *tlsCredentials) lastError() error {
	if h == nil || h.lastErr.Load() == nil {
		return nil
	}
	return *h.lastErr.Load()
}

// A checkedConn is a connection that has completed its handshake. A server that refuses
// the client's certificate reports that only after the handshake, in place of its first
// answer.
type checkedConn struct {
	net.Conn
	credentials *tlsCredentials
	answered    bool // the server has answered; used by the reading goroutine only
}

func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.answered {
		if c.answered = n > 0; c.answered {
			c.credentials.lastErr.Store(nil)
		} else if err != nil {
			c.credentials.lastErr.Store(&err)
		}
	}
	return n, err
}
