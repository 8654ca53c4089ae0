package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	_ "github.com/pawl-go/pawl/etcdlock"
)

// startEtcd starts one member.
func startEtcd() (server, error) {
	bin, err := built("etcd")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pawl-bench")
	if err != nil {
		return nil, err
	}
	addr, _, err := freeAddr()
	if err != nil {
		return nil, err
	}
	peer, _, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &program{addr: addr, dir: dir}
	p.cmd = exec.Command(bin, "--data-dir", filepath.Join(dir, "data"), "--log-level", "error",
		"--listen-client-urls", "http://"+addr, "--advertise-client-urls", "http://"+addr,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.count = func() int64 { return handled(addr) }
	err = ready(func() error {
		r, err := http.Get("http://" + addr + "/health")
		if err != nil {
			return err
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("health: %s", r.Status)
		}
		return nil
	})
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// handled is how many requests etcd says that it has answered.
func handled(addr string) (n int64) {
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "grpc_server_handled_total") || !strings.Contains(line, `grpc_type="unary"`) {
			continue
		}
		v, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		n += int64(v)
	}
	return n
}

func etcdContenders() []contender {
	return []contender{
		{name: "concurrency.Mutex", open: openEtcdMutex, tells: true},
		{name: "pawl", open: openURL(func(addr string) string { return "etcd://" + addr }), renews: true, tells: true},
	}
}

// etcdMutex is etcd's own lock. Two of one session both lock a name, so goroutines that
// want the same one need a session each; the goroutines of a client here do not.
type etcdMutex struct {
	c *clientv3.Client
	s *concurrency.Session
}

func openEtcdMutex(addr string, ttl time.Duration) (client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(c, concurrency.WithTTL(int(ttl/time.Second)))
	return &etcdMutex{c, s}, err
}

func (e *etcdMutex) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	m := concurrency.NewMutex(e.s, name)
	if err := m.Lock(ctx); err != nil {
		return nil, nil, err
	}
	return func() error { return m.Unlock(context.Background()) }, e.s.Done, nil
}

func (e *etcdMutex) close() {
	_ = e.s.Close()
	_ = e.c.Close()
}
