package sim

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// A conn is a connection of a process to Redis. Two goroutines carry the data in order
// and with the delays of the weather, one goroutine for each direction. Data that one end
// sent before it was closed still arrives at the other.
type conn struct {
	n     *redisNode
	p     *process
	near  net.Conn // the process' end
	inner net.Conn // the server's

	mu    sync.Mutex // protects what follows
	dice  *dice
	ready bool // its first command has been sent
}

func (c *conn) start() {
	go c.pump(c.near, c.inner)
	go c.pump(c.inner, c.near)
}

// A parcel is the data of one write, and the time of its arrival.
type parcel struct {
	data []byte
	due  moment
	lost bool // the connection breaks before it arrives
}

func (c *conn) pump(from, to net.Conn) {
	way := make(chan parcel, 1024)
	go c.deliver(way, to)
	defer close(way)
	buf := make([]byte, 64<<10)
	due := moment(0)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if from == c.near && isCommand(buf[:n]) {
			c.mu.Lock()
			c.ready = true
			c.mu.Unlock()
		}
		delay, lost := c.drawFate()
		due = max(due+1, c.n.w.now()+delay)
		way <- parcel{append([]byte(nil), buf[:n]...), due, lost}
		if lost {
			_, _ = io.Copy(io.Discard, from) // the writer holds a mutex, and must not wait
			return
		}
	}
}

// isCommand distinguishes a command from the greetings before the first command.
// Greetings have no delay: go-redis holds a mutex meanwhile, which stops virtual time.
func isCommand(b []byte) bool {
	for _, verb := range []string{"evalsha", "eval", "script", "subscribe", "time"} {
		if bytes.Contains(bytes.ToLower(b[:min(len(b), 40)]), []byte("\r\n"+verb+"\r\n")) {
			return true
		}
	}
	return false
}

// drawFate draws the delay of a message, and whether the connection breaks before it
// arrives.
func (c *conn) drawFate() (time.Duration, bool) {
	w := c.n.w.weather()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready {
		return 0, false
	}
	return w.drawDelay(c.dice), c.dice.chance((w.lost + w.reset) / 2)
}

func (c *conn) deliver(way chan parcel, to net.Conn) {
	defer c.closeBothEnds()
	for p := range way {
		if d := p.due - c.n.w.now(); d > 0 {
			time.Sleep(d)
		}
		for d := c.blockedFor(); d > 0 && !c.p.isDead(); d = c.blockedFor() {
			time.Sleep(d)
		}
		if p.lost || to == c.near && c.p.isDead() {
			return
		}
		c.n.redis.SetTime(c.n.clock.now()) // it handles the message at this time
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// blockedFor returns how much longer no data passes.
func (c *conn) blockedFor() time.Duration {
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	if !ready {
		return 0
	}
	return c.n.blockedFor(c.p)
}

// closeBothEnds closes both ends.
func (c *conn) closeBothEnds() {
	_ = c.near.Close()
	_ = c.inner.Close()
}
