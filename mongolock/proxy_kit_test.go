package mongolock

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// A proxy is a network between a driver and its server.
type proxy struct {
	addr string
	to   string
	l    net.Listener

	mu    sync.Mutex
	lose  []byte // the reply to the next request with this text is lost, and its connection
	conns map[net.Conn]bool
}

func startProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), to: to, l: l, conns: map[net.Conn]bool{}}
	var loops sync.WaitGroup
	loops.Go(func() { p.serve(&loops) })
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		loops.Wait()
	})
	return p
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// loseReply loses the reply to the next request that has this in it.
func (p *proxy) loseReply(request string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = []byte(request)
}

func (p *proxy) serve(loops *sync.WaitGroup) {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		loops.Go(func() { p.requests(client, server) })
		loops.Go(func() { p.replies(client, server) })
	}
}

// requests passes on what a client sends, even after the client has gone.
func (p *proxy) requests(client, server net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		p.mu.Lock()
		lose := n > 0 && p.lose != nil && bytes.Contains(b[:n], p.lose)
		if lose {
			p.lose = nil
		}
		p.mu.Unlock()
		if lose {
			_ = client.Close()
		}
		if n > 0 {
			_, _ = server.Write(b[:n])
		}
		if err != nil {
			_ = server.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

func (p *proxy) replies(client, server net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := server.Read(b)
		if n > 0 {
			_, _ = client.Write(b[:n])
		}
		if err != nil {
			_, _ = client.Close(), server.Close()
			p.mu.Lock()
			delete(p.conns, client)
			delete(p.conns, server)
			p.mu.Unlock()
			return
		}
	}
}
