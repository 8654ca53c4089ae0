package redis_test

import (
	"context"
	_ "embed"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// A world is a Redis in virtual time: miniredis in a bubble, where a day passes at once.
// miniredis runs the scripts, and needs no network. Tests with a real Redis check the
// behavior of Redis itself.
type world struct {
	t      *testing.T
	redis  *miniredis.Miniredis
	server *server.Server // kept here because miniredis drops it in Close, while scripts may still run
	runs   atomic.Int64   // the number of scripts that have run

	mu    sync.Mutex    // protects the fields below
	ahead time.Duration // the lead of the server's clock
	down  bool
	conns []net.Conn
}

//go:embed testdata/struct.lua
var structLibrary string

// scripts has the text of each script by its SHA.
var scripts = map[string]string{}

func init() {
	for _, s := range []*redisscript.Script{
		redisscript.Acquire, redisscript.Renew, redisscript.Release, redisscript.Break, redisscript.Raise, redisscript.Read,
		redisscript.Force, redisscript.Many, redisscript.All, redisscript.Watch,
	} {
		scripts[s.SHA] = structLibrary + s.Source
	}
}

// inWorld runs a test with a Redis in virtual time. Tests that use it must not be
// parallel: it uses a whole processor, and parallel tests wait in real time.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		w := &world{t: t, redis: miniredis.NewMiniRedis()}
		first, err := w.redis.Dial() // this starts it
		noError(t, err)
		defer first.Close()
		w.redis.ClockTTL(true)
		w.server = w.redis.Server()
		w.server.SetPreHook(w.runScript)
		t.Cleanup(func() {
			w.crash() // go-redis may still dial, in a goroutine of its own: not while miniredis closes
			w.redis.Close()
			// go-redis checks each second whether the server is back, and only then
			// notices that the client is closed
			time.Sleep(2 * time.Second)
		})
		f(t, w)
	})
}

// runScript runs a script at the server's time, with the library that miniredis lacks.
func (w *world) runScript(c *server.Peer, cmd string, args ...string) bool {
	if cmd != "EVALSHA" {
		return false // TIME returns the clock of the last script, and is never too late
	}
	w.runs.Add(1)
	w.redis.SetTime(w.now())
	w.server.Dispatch(c, append([]string{"EVAL", scripts[args[0]]}, args[1:]...))
	return true
}

// now returns the server's clock.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) setAhead(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead = by
}

// crash ends all connections, and refuses new ones until restart. The data stays.
func (w *world) crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func (w *world) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errors.New("connection refused")
	}
	c, err := w.redis.Dial()
	if err == nil {
		w.conns = append(w.conns, c)
	}
	return c, err
}

// client returns the client of one more process. The end of the test closes it.
func (w *world) client(o *pawl.Options) *pawl.Client {
	w.t.Helper()
	locks, err := pawl.New(w.driver(), o)
	noError(w.t, err)
	w.t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// driver returns the driver of one more process.
func (w *world) driver() *redisscript.Driver {
	w.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: w.dial})
	d, err := asDriver(goredislock.New(client, nil))
	noError(w.t, err)
	w.t.Cleanup(func() {
		_ = d.Close()
		_ = client.Close()
	})
	return d
}
