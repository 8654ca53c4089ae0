package etcdtest

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strconv"
	"sync"
)

// peerNetwork is the network between the members. Each member reaches the others through
// proxies, which read the ID of the sender in the first bytes of a connection.
type peerNetwork struct {
	mu      sync.Mutex    // protects the fields below
	cutID   string        // the ID of the member that is cut off; empty if there is none
	cutAddr string        // the address at which the others reach that member
	healed  chan struct{} // closed by Heal
	conns   []net.Conn
	closed  bool
}

// Cut cuts a member off from the others. Until Heal, all bytes between them are lost
// silently. id is the ID in the member's answers.
func (c *Cluster) Cut(m *Member, id uint64) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	c.network.cutID, c.network.cutAddr = strconv.FormatUint(id, 16), m.Peer
}

// Heal ends Cut.
func (c *Cluster) Heal() {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	c.network.cutID = ""
	close(c.network.healed)
	c.network.healed = make(chan struct{})
}

// startProxy starts the proxy of a member: the others dial peerAddr, and the member
// listens at listenAddr.
func (p *peerNetwork) startProxy(tb TB, peerAddr, listenAddr string) {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", peerAddr)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	var loops sync.WaitGroup
	loops.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			loops.Go(func() { p.forward(conn, peerAddr, listenAddr) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		p.close()
		loops.Wait()
	})
}

func (p *peerNetwork) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	close(p.healed)
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// closeLater adds a connection that close closes.
func (p *peerNetwork) closeLater(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns = append(p.conns, c); p.closed {
		_ = c.Close()
	}
}

var senderID = regexp.MustCompile(`(?i)\r\nx-server-from: ([0-9a-f]+)\r\n`)

// forward forwards the bytes of one connection, in both directions.
func (p *peerNetwork) forward(from net.Conn, peerAddr, listenAddr string) {
	defer from.Close()
	p.closeLater(from)
	first := make([]byte, 4<<10)
	n, err := from.Read(first)
	if err != nil {
		return
	}
	id := ""
	if found := senderID.FindSubmatch(first[:n]); found != nil {
		id = string(bytes.ToLower(found[1]))
	}
	p.awaitHeal(id, peerAddr)
	to, err := new(net.Dialer).DialContext(context.Background(), "tcp", listenAddr)
	if err != nil {
		return
	}
	defer to.Close()
	p.closeLater(to)
	if _, err := to.Write(first[:n]); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.copy(from, to, id, peerAddr) })
	p.copy(to, from, id, peerAddr)
	back.Wait()
}

// copy forwards bytes until one end is closed, and then closes the other.
func (p *peerNetwork) copy(to, from net.Conn, id, peerAddr string) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil || p.awaitHeal(id, peerAddr) {
			return // the delayed bytes are lost
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// awaitHeal waits until these two members can reach each other, and reports whether it
// had to wait. A sender without an ID may be the member that is cut off.
func (p *peerNetwork) awaitHeal(id, peerAddr string) (waited bool) {
	for {
		p.mu.Lock()
		isCut := p.cutID != "" && !p.closed && (id == "" || id == p.cutID || peerAddr == p.cutAddr)
		healed := p.healed
		p.mu.Unlock()
		if !isCut {
			return waited
		}
		waited = true
		<-healed
	}
}
