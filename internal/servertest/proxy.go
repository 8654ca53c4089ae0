package servertest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Proxy forwards the connections of clients to a server. A test can make it fail.
type Proxy struct {
	Addr string

	serverAddr string
	listener   net.Listener
	loops      sync.WaitGroup
	latency    atomic.Int64 // a time.Duration, see Far

	mu          sync.Mutex // protects the fields below
	rule        *rule
	held        chan struct{} // requests wait until it is closed; nil without a Hold
	heldRequest *heldRequest
	conns       []net.Conn
	links       []*link
	down        bool // the proxy refuses connections
	closed      bool
}

// A rule applies to the requests that contain these bytes.
type rule struct {
	text     []byte
	times    int  // the number of replies that it still drops, unless silent
	silent   bool // drops the request and all data after it, not only the reply
	happened chan struct{}
	once     sync.Once
}

func (r *rule) happens() { r.once.Do(func() { close(r.happened) }) }

// StartProxy starts a proxy before the server at an address.
func StartProxy(tb TB, serverAddr string) *Proxy {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	noError(tb, err)
	return ProxyOn(tb, l, serverAddr)
}

// ProxyOn starts a proxy that accepts its clients on a listener, such as one with TLS.
func ProxyOn(tb TB, l net.Listener, serverAddr string) *Proxy {
	p := &Proxy{Addr: l.Addr().String(), serverAddr: serverAddr, listener: l}
	p.loops.Go(p.serve)
	tb.Cleanup(p.close)
	return p
}

// LoseReply lets the server handle the next request that contains this text, and then
// ends the connection of the client without the reply. Afterwards it closes happened.
func (p *Proxy) LoseReply(request string) (happened <-chan struct{}) {
	return p.LoseReplies(1, request)
}

// LoseReplies is LoseReply for the next times requests.
func (p *Proxy) LoseReplies(times int, request string) (happened <-chan struct{}) {
	return p.setRule(&rule{text: []byte(request), times: times})
}

// Silence makes each connection hang in both directions, beginning with the first request
// that contains this text. It closes happened when the first one hangs.
func (p *Proxy) Silence(request string) (happened <-chan struct{}) {
	return p.setRule(&rule{text: []byte(request), silent: true})
}

// Hold delays all requests until letGo. Then they arrive in the order of each connection,
// even if the client has closed the connection meanwhile.
func (p *Proxy) Hold() (letGo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := make(chan struct{})
	p.held = held
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.letGo(held)
	})
}

// letGo ends a Hold. The caller holds the mutex.
func (p *Proxy) letGo(held chan struct{}) {
	if held != nil && p.held == held {
		close(held)
		p.held = nil
	}
}

func (p *Proxy) waitHold() {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held != nil {
		<-held
	}
}

// HoldFrom delays one connection, beginning with the next request that contains this
// text, until letGo. Then all data arrives, even if the client has closed the connection
// meanwhile. It closes came when it delays the request.
func (p *Proxy) HoldFrom(request string) (came <-chan struct{}, letGo func()) {
	s := &heldRequest{text: []byte(request), came: make(chan struct{}), released: make(chan struct{})}
	s.letGo = sync.OnceFunc(func() { close(s.released) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heldRequest = s
	return s.came, s.letGo
}

// A heldRequest is the request that HoldFrom delays.
type heldRequest struct {
	text           []byte
	arrived        bool // at the proxy
	came, released chan struct{}
	letGo          func()
}

// waitHeldRequest delays a request if it is the one of HoldFrom.
func (p *Proxy) waitHeldRequest(request []byte) {
	p.mu.Lock()
	s := p.heldRequest
	matches := s != nil && !s.arrived && bytes.Contains(request, s.text)
	if matches {
		s.arrived = true
	}
	p.mu.Unlock()
	if matches {
		close(s.came)
		<-s.released
	}
}

// Freeze makes the present connections hang forever in both directions. New connections
// work.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.frozen.Store(true)
	}
}

// Slow delays all requests on the present connections by at least delay. New connections
// are not delayed.
func (p *Proxy) Slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.delay.Store(int64(delay))
	}
}

// Far delays all data in each direction by at least latency, on present and new
// connections.
func (p *Proxy) Far(latency time.Duration) { p.latency.Store(int64(latency)) }

// Refuse ends all connections, and refuses new ones until Heal.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	p.closeConns()
}

// Heal makes new connections work again, and ends the old ones.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.down = nil, false
	p.closeConns()
}

func (p *Proxy) setRule(r *rule) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.happened = make(chan struct{})
	p.rule = r
	return r.happened
}

// matchRule returns the rule for a request. It counts down the replies that a rule drops.
func (p *Proxy) matchRule(request []byte) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rule
	if r == nil || !bytes.Contains(request, r.text) {
		return nil
	}
	if !r.silent {
		if r.times--; r.times == 0 {
			p.rule = nil
		}
	}
	return r
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.serverAddr)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{proxy: p, client: client, server: server}
		p.mu.Lock()
		p.conns, p.links = append(p.conns, client, server), append(p.links, l)
		if p.closed || p.down {
			p.closeConns()
		}
		p.mu.Unlock()
		p.loops.Go(l.requests)
		p.loops.Go(l.replies)
	}
}

// closeConns ends all connections. The caller holds the mutex.
func (p *Proxy) closeConns() {
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns, p.links = nil, nil
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.letGo(p.held)
	if p.heldRequest != nil {
		p.heldRequest.letGo()
	}
	p.closeConns()
	p.mu.Unlock()
	p.loops.Wait()
}

// A link is a client's connection, with the proxy's connection to the server for it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	frozen         atomic.Bool
	delay          atomic.Int64 // a time.Duration, see Slow

	mu     sync.Mutex // protects the fields below; held while a request is forwarded, so that its reply comes later
	losing *rule
	silent bool
}

func (l *link) requests() {
	b := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(b)
		l.proxy.waitHold()
		l.proxy.waitHeldRequest(b[:n])
		time.Sleep(time.Duration(l.delay.Load() + l.proxy.latency.Load()))
		if n > 0 && err == nil {
			err = l.request(b[:n])
		}
		if err != nil {
			// The server must first read and handle the data before the end.
			if c, ok := l.server.(*net.TCPConn); ok {
				_ = c.CloseWrite()
			}
			return
		}
	}
}

func (l *link) request(b []byte) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.proxy.matchRule(b)
	if r != nil && r.silent {
		l.silent = true
		r.happens()
	}
	if l.silent || l.frozen.Load() {
		return nil
	}
	_, err = l.server.Write(b)
	if r != nil {
		l.losing = r
	}
	return err
}

func (l *link) replies() {
	defer l.server.Close()
	defer l.client.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(b)
		time.Sleep(time.Duration(l.proxy.latency.Load()))
		l.mu.Lock()
		losing, silent := l.losing, l.silent
		l.mu.Unlock()
		switch {
		case err != nil:
			if losing != nil {
				losing.happens()
			}
			return
		case losing != nil:
			_ = l.client.Close() // so that requests ends, which also ends the server's connection
		case silent, l.frozen.Load():
		default:
			if _, err := l.client.Write(b[:n]); err != nil {
				return
			}
		}
	}
}
