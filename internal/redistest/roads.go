package redistest

import (
	"context"
	"net"
	"slices"
	"sync"
)

// Roads are the network between one client and several servers: a proxy on the way to
// each address that it dials.
type Roads struct {
	open []string // addresses that are dialed directly

	mu      sync.Mutex // protects all below
	proxies map[string]*Proxy
	held    bool
	letGo   []func()
}

// NewRoads makes the network of a client. What it dials at one of the open addresses is
// never held up: Sentinels that do not answer make a client look for another master.
func NewRoads(tb TB, open ...string) *Roads {
	r := &Roads{open: open, proxies: map[string]*Proxy{}}
	tb.Cleanup(r.close)
	return r
}

// Dial is for the client.
func (r *Roads) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if !slices.Contains(r.open, addr) {
		p, err := r.to(addr)
		if err != nil {
			return nil, err
		}
		addr = p.Addr
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

func (r *Roads) to(addr string) (*Proxy, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.proxies[addr]; p != nil {
		return p, nil
	}
	p, err := startProxy(addr)
	if err != nil {
		return nil, err
	}
	r.proxies[addr] = p
	if r.held {
		r.letGo = append(r.letGo, p.Hold())
	}
	return p, nil
}

// Hold is Proxy.Hold on all of them.
func (r *Roads) Hold() (letGo func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
	for _, p := range r.proxies {
		r.letGo = append(r.letGo, p.Hold())
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, letGo := range r.letGo {
			letGo()
		}
		r.held, r.letGo = false, nil
	}
}

func (r *Roads) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.proxies {
		p.close()
	}
}
