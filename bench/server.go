package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is started by this program, on a free port and in a temporary folder.
type server interface {
	address() string
	cpu() time.Duration      // the processor time that the server has used
	calls(c contender) int64 // the number of requests of a contender that the server has answered
	stop()
}

// redisServer is a redis-server without persistence.
type redisServer struct {
	addr  string
	cmd   *exec.Cmd
	dir   string
	admin *redis.Client
}

func startRedis() (server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_ = l.Close()
	dir, err := os.MkdirTemp("", "pawl-bench")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	s := &redisServer{addr: addr, dir: dir, admin: goRedis(addr)}
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server is needed: %w", err)
	}
	for range 200 {
		if err = s.admin.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, err
}

func (s *redisServer) stop() {
	s.halt()
	_ = os.RemoveAll(s.dir)
}

// halt ends the server, but does not delete its folder.
func (s *redisServer) halt() {
	_ = s.admin.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *redisServer) address() string { return s.addr }

// calls returns the number of commands that a contender's client has sent. The server
// also counts commands in scripts, which calls leaves out.
func (s *redisServer) calls(c contender) int64 {
	var n int64
	info, _ := s.admin.Info(context.Background(), "commandstats").Result()
	for line := range strings.Lines(info) {
		name, stats, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || !slices.Contains(c.sends, name) {
			continue
		}
		calls, _, _ := strings.Cut(stats, ",")
		count, _ := strconv.ParseInt(calls, 10, 64)
		n += count
	}
	return n
}

// cpu returns the processor time that the server has used.
func (s *redisServer) cpu() time.Duration {
	info, _ := s.admin.Info(context.Background(), "cpu").Result()
	var sum float64
	for line := range strings.Lines(info) {
		for _, field := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if v, ok := strings.CutPrefix(line, field); ok {
				f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
				sum += f
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}
