package etcdtest

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strconv"
	"sync"
)

// wires are the network between the members. Each member reaches the others through
// proxies, which read the ID of the sender in the first bytes of a connection.
type wires struct {
	mu      sync.Mutex // protects the fields below
	cutID   string     // the ID of the member that is cut off; empty: no member is
	cutAddr string     // the address at which the others reach it
	healed  chan struct{}
	conns   []net.Conn
	closed  bool
}

// Cut cuts a member off from the others. Until Heal, all bytes between them are
// lost silently. The id is the one in the member's answers.
func (c *Cluster) Cut(m *Member, id uint64) {
	c.wires.mu.Lock()
	defer c.wires.mu.Unlock()
	c.wires.cutID, c.wires.cutAddr = strconv.FormatUint(id, 16), m.Peer
}

// Heal ends Cut.
func (c *Cluster) Heal() {
	c.wires.mu.Lock()
	defer c.wires.mu.Unlock()
	c.wires.cutID = ""
	close(c.wires.healed)
	c.wires.healed = make(chan struct{})
}

// startProxy starts the proxy of a member: the others dial peerAddr, and the member
// listens at listenAddr.
func (w *wires) startProxy(tb TB, peerAddr, listenAddr string) {
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
			loops.Go(func() { w.carry(conn, peerAddr, listenAddr) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		w.close()
		loops.Wait()
	})
}

// close closes all connections.
func (w *wires) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	close(w.healed)
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// track adds a connection that close closes.
func (w *wires) track(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns = append(w.conns, c); w.closed {
		_ = c.Close()
	}
}

var senderID = regexp.MustCompile(`(?i)\r\nx-server-from: ([0-9a-f]+)\r\n`)

// carry forwards one connection.
func (w *wires) carry(from net.Conn, peerAddr, listenAddr string) {
	defer from.Close()
	w.track(from)
	first := make([]byte, 4<<10)
	n, err := from.Read(first)
	if err != nil {
		return
	}
	id := ""
	if found := senderID.FindSubmatch(first[:n]); found != nil {
		id = string(bytes.ToLower(found[1]))
	}
	w.awaitHeal(id, peerAddr)
	to, err := new(net.Dialer).DialContext(context.Background(), "tcp", listenAddr)
	if err != nil {
		return
	}
	defer to.Close()
	w.track(to)
	if _, err := to.Write(first[:n]); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { w.copy(from, to, id, peerAddr) })
	w.copy(to, from, id, peerAddr)
	back.Wait()
}

// copy forwards bytes until one end is closed, and then closes the other.
func (w *wires) copy(to, from net.Conn, id, peerAddr string) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil || w.awaitHeal(id, peerAddr) {
			return // the delayed bytes are lost
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// awaitHeal waits until these two members can reach each other, and reports whether it
// had to wait. A sender without an ID may be the member that is cut off.
func (w *wires) awaitHeal(id, peerAddr string) (waited bool) {
	for {
		w.mu.Lock()
		isCut := w.cutID != "" && !w.closed && (id == "" || id == w.cutID || peerAddr == w.cutAddr)
		healed := w.healed
		w.mu.Unlock()
		if !isCut {
			return waited
		}
		waited = true
		<-healed
	}
}
