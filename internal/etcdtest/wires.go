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
// proxies, which identify the sender by the first bytes that it sends.
type wires struct {
	mu      sync.Mutex // protects the fields below
	cutID   string     // the ID of the member that is cut off; empty: no member is
	cutAddr string     // the address at which the others reach it
	healed  chan struct{}
	conns   []net.Conn
	closed  bool
}

// Cut cuts a member off from the others. All bytes under way between them are lost
// silently, until Heal. The id is the one in the member's answers.
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

// startProxy starts the proxy of a member. The member listens at one address, and the
// others dial another.
func (w *wires) startProxy(tb TB, reached, listens string) {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", reached)
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
			loops.Go(func() { w.carry(conn, reached, listens) })
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

var sender = regexp.MustCompile(`(?i)\r\nx-server-from: ([0-9a-f]+)\r\n`)

// carry forwards one connection.
func (w *wires) carry(from net.Conn, reached, listens string) {
	defer from.Close()
	w.track(from)
	first := make([]byte, 4<<10)
	n, err := from.Read(first)
	if err != nil {
		return
	}
	who := ""
	if found := sender.FindSubmatch(first[:n]); found != nil {
		who = string(bytes.ToLower(found[1]))
	}
	w.awaitHeal(who, reached)
	to, err := new(net.Dialer).DialContext(context.Background(), "tcp", listens)
	if err != nil {
		return
	}
	defer to.Close()
	w.track(to)
	if _, err := to.Write(first[:n]); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { w.copy(from, to, who, reached) })
	w.copy(to, from, who, reached)
	back.Wait()
}

// copy forwards bytes until one end is closed, and then closes the other.
func (w *wires) copy(to, from net.Conn, who, reached string) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil || w.awaitHeal(who, reached) {
			return // the delayed bytes are lost
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// awaitHeal waits while these two members cannot reach each other, and reports whether it
// had to wait. A sender without an ID may be the member that is cut off.
func (w *wires) awaitHeal(who, reached string) (waited bool) {
	for {
		w.mu.Lock()
		isCut := w.cutID != "" && !w.closed && (who == "" || who == w.cutID || reached == w.cutAddr)
		healed := w.healed
		w.mu.Unlock()
		if !isCut {
			return waited
		}
		waited = true
		<-healed
	}
}
