package servertest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Proxy is a network between clients and a server, which a test can make fail.
type Proxy struct {
	Addr string

	to       string
	listener net.Listener
	loops    sync.WaitGroup
	away     atomic.Int64 // a time.Duration, see Far

	mu    sync.Mutex // protects all below
	rule  *rule
	held  chan struct{} // requests are held up until it is closed; nil if they are not
	stray *stray
	conns []net.Conn
	links []*link
	down  bool // connections are refused
	over  bool
}

// A rule applies to the requests that contain these bytes.
type rule struct {
	what     []byte
	times    int  // how often it still happens, unless silent
	silent   bool // the request is lost, and all after it; otherwise only its reply, and the connection ends
	happened chan struct{}
	once     sync.Once
}

func (r *rule) happens() { r.once.Do(func() { close(r.happened) }) }

// StartProxy starts a proxy before the server at an address.
func StartProxy(tb TB, to string) *Proxy {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	noError(tb, err)
	return ProxyOn(tb, l, to)
}

// ProxyOn starts a proxy that accepts its clients from a listener, such as one with TLS.
func ProxyOn(tb TB, l net.Listener, to string) *Proxy {
	p := &Proxy{Addr: l.Addr().String(), to: to, listener: l}
	p.loops.Go(p.serve)
	tb.Cleanup(p.close)
	return p
}

// LoseReply lets the server run the next request with these bytes in it, and then ends
// the connection of the client without the reply. The channel is closed when both have
// happened.
func (p *Proxy) LoseReply(request string) (happened <-chan struct{}) {
	return p.LoseReplies(1, request)
}

// LoseReplies does the same for the next `times` requests.
func (p *Proxy) LoseReplies(times int, request string) (happened <-chan struct{}) {
	return p.set(&rule{what: []byte(request), times: times})
}

// Silence makes each connection hang, in both directions, from the first request with
// these bytes in it. The channel is closed when there was one.
func (p *Proxy) Silence(request string) (happened <-chan struct{}) {
	return p.set(&rule{what: []byte(request), silent: true})
}

// Hold holds up all requests from now on, until letGo lets them arrive: in the order of
// each connection, even when the client has closed it meanwhile.
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

func (p *Proxy) holdUp() {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held != nil {
		<-held
	}
}

// HoldFrom holds up one connection from the next request with these bytes in it, until
// letGo lets all arrive, even when the client has closed it meanwhile. The channel is
// closed when there was such a request.
func (p *Proxy) HoldFrom(request string) (came <-chan struct{}, letGo func()) {
	s := &stray{what: []byte(request), came: make(chan struct{}), goes: make(chan struct{})}
	s.letGo = sync.OnceFunc(func() { close(s.goes) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stray = s
	return s.came, s.letGo
}

// A stray is a request that arrives late.
type stray struct {
	what       []byte
	taken      bool // it has arrived at the proxy
	came, goes chan struct{}
	letGo      func()
}

// lead delays the request if it is the stray.
func (p *Proxy) lead(request []byte) {
	p.mu.Lock()
	s := p.stray
	takes := s != nil && !s.taken && bytes.Contains(request, s.what)
	if takes {
		s.taken = true
	}
	p.mu.Unlock()
	if takes {
		close(s.came)
		<-s.goes
	}
}

// Freeze makes the present connections hang for ever, in both directions. New connections
// pass everything.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.frozen.Store(true)
	}
}

// Slow delays all bytes on the present connections by at least this time. New connections
// are not delayed.
func (p *Proxy) Slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.slow.Store(int64(by))
	}
}

// Far makes all bytes take at least this time, each way, on present and new connections.
func (p *Proxy) Far(away time.Duration) { p.away.Store(int64(away)) }

// Refuse ends all connections, and refuses new ones until Heal.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	p.cut()
}

// Heal lets new connections pass everything again, and ends the old ones.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.down = nil, false
	p.cut()
}

func (p *Proxy) set(r *rule) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.happened = make(chan struct{})
	p.rule = r
	return r.happened
}

// match returns the rule for a request. A rule that loses a reply counts down with each.
func (p *Proxy) match(request []byte) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rule
	if r == nil || !bytes.Contains(request, r.what) {
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
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{proxy: p, client: client, server: server}
		p.mu.Lock()
		p.conns, p.links = append(p.conns, client, server), append(p.links, l)
		if p.over || p.down {
			p.cut()
		}
		p.mu.Unlock()
		p.loops.Go(l.requests)
		p.loops.Go(l.replies)
	}
}

// cut ends all connections. The caller holds the mutex.
func (p *Proxy) cut() {
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns, p.links = nil, nil
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.over = true
	p.letGo(p.held)
	if p.stray != nil {
		p.stray.letGo()
	}
	p.cut()
	p.mu.Unlock()
	p.loops.Wait()
}

// A link is a client's connection, and the connection to the server for it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	frozen         atomic.Bool
	slow           atomic.Int64 // a time.Duration

	mu     sync.Mutex // protects losing and silent; held while a request is passed on, so that its reply comes after it
	losing *rule
	silent bool
}

func (l *link) requests() {
	b := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(b)
		l.proxy.holdUp()
		l.proxy.lead(b[:n])
		time.Sleep(time.Duration(l.slow.Load() + l.proxy.away.Load()))
		if n > 0 && err == nil {
			err = l.request(b[:n])
		}
		if err != nil {
			// The server has to read and run what it has not read yet. It sees the end
			// after that.
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
	r := l.proxy.match(b)
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
		time.Sleep(time.Duration(l.proxy.away.Load()))
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
			_ = l.client.Close() // then requests tells the server, and it ends the connection
		case silent, l.frozen.Load():
		default:
			if _, err := l.client.Write(b[:n]); err != nil {
				return
			}
		}
	}
}
