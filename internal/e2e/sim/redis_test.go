package sim

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	protocol "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// A redisNode is a miniredis in virtual time. Processes use connections to it: the
// messages of one connection arrive in order. A connection may break, and then its last
// messages may have arrived or not.
type redisNode struct {
	w      *world
	redis  *miniredis.Miniredis
	clock  clock
	reader *redis.Client // reads the leftovers, without faults

	mu        sync.Mutex // protects what follows
	conns     map[*conn]bool
	hungUntil moment
	downUntil moment
}

// scripts has the text of our scripts by the names that miniredis gives them. init adds
// the library "struct", which miniredis lacks.
var scripts = map[string]string{}

func init() {
	redis.SetLogger(silentLogger{})
	lua, err := os.ReadFile("../redis/testdata/struct.lua")
	if err != nil {
		panic(err)
	}
	for _, s := range []*redisscript.Script{
		redisscript.Acquire, redisscript.Renew, redisscript.Release, redisscript.Break, redisscript.Force, redisscript.Read, redisscript.Raise, redisscript.Many,
	} {
		scripts[s.SHA] = string(lua) + s.Source
	}
}

func newRedisNode(w *world) *redisNode {
	p := w.plan.nodes[0]
	n := &redisNode{w: w, redis: miniredis.NewMiniRedis(), clock: clock{start: w.start, ppm: p.ppm, ahead: p.ahead}, conns: map[*conn]bool{}}
	first, err := n.redis.Dial() // this starts it
	if err != nil {
		panic(err)
	}
	_ = first.Close()
	n.redis.ClockTTL(true)
	n.redis.Server().SetPreHook(n.runScript)
	n.reader = redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Protocol: 2, Dialer: func(context.Context, string, string) (net.Conn, error) {
		return n.redis.Dial()
	}})
	return n
}

// runScript runs EVALSHA as EVAL of the script with the library.
func (n *redisNode) runScript(c *protocol.Peer, cmd string, args ...string) bool {
	if cmd != "EVALSHA" {
		return false
	}
	n.redis.Server().Dispatch(c, append([]string{"EVAL", scripts[args[0]]}, args[1:]...))
	return true
}

// driver returns the driver of one more process. It speaks RESP2: with RESP3, go-redis
// holds a mutex while it waits for an answer, and virtual time stands still meanwhile.
func (n *redisNode) driver(p *process) rootDriver {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", Protocol: 2, DialerRetries: 1, // otherwise it waits with a mutex, too
		Dialer: func(context.Context, string, string) (net.Conn, error) { return n.dial(p) },
	})
	p.onClose = append(p.onClose, func() { _ = client.Close() })
	d, err := goredislock.New(client, nil)
	if err != nil {
		panic(err)
	}
	return engine.Full(d)
}

func (n *redisNode) dial(p *process) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.w.now() < n.downUntil || p.isDead() {
		return nil, errors.New("connection refused")
	}
	inner, err := n.redis.Dial()
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	c := &conn{n: n, p: p, near: far, inner: inner, dice: diceOf(n.w.plan.fateSeed + uint64(1000*p.number+p.dials))}
	p.dials++
	n.conns[c] = true
	c.start()
	return near, nil
}

// hang delays every message that arrives.
func (n *redisNode) hang(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hungUntil = max(n.hungUntil, n.w.now()+d)
}

// loseData is a kill of the server without a snapshot.
func (n *redisNode) loseData(d time.Duration) {
	n.mu.Lock()
	n.downUntil = n.w.now() + d
	all := n.conns
	n.conns = map[*conn]bool{}
	n.mu.Unlock()
	n.redis.FlushAll()
	for c := range all {
		c.closeBothEnds()
	}
}

func (n *redisNode) jump(by time.Duration) { n.clock.jump(by) }

// blockedFor returns how much longer no message passes on a connection.
func (n *redisNode) blockedFor(p *process) time.Duration {
	n.mu.Lock()
	hungUntil := n.hungUntil
	n.mu.Unlock()
	return max(hungUntil-n.w.now(), p.pauseLeft(), p.cutFor())
}

func (n *redisNode) entry(name string) driver.Entry {
	n.redis.SetTime(n.clock.now())
	d, err := goredislock.New(n.reader, &goredislock.Options{NoPush: true})
	if err != nil {
		panic(err)
	}
	defer d.Close()
	e, err := d.Inspect(context.Background(), name)
	if err != nil {
		n.w.violated(name, "Redis cannot be read: %v", err)
	}
	return e
}

func (n *redisNode) close() {
	n.mu.Lock()
	n.downUntil = n.w.now() + time.Hour // go-redis may still dial, in its own goroutine: not while miniredis closes
	n.mu.Unlock()
	_ = n.reader.Close()
	n.redis.Close()
	// go-redis checks each second whether the server is back, and notices then that the
	// client was closed
	time.Sleep(2 * time.Second)
}

// silentLogger drops the log of go-redis, which reports connections that the simulation
// breaks.
type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}
