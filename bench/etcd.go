package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	_ "github.com/pawl-go/pawl/etcdlock"
)

// startEtcd starts a cluster of one member.
func startEtcd() (server, error) {
	bin, err := buildServer("etcd")
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
	p := &serverProcess{addr: addr, dir: dir}
	p.cmd = exec.Command(bin, "--data-dir", filepath.Join(dir, "data"), "--log-level", "error",
		"--listen-client-urls", "http://"+addr, "--advertise-client-urls", "http://"+addr,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.count = func() int64 { return handledRequests(addr) }
	err = waitReady(func() error {
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
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	p.close = func() { _ = c.Close() }
	return &etcdServer{p, c}, err
}

// An etcdServer is a server with an administrator's client.
type etcdServer struct {
	*serverProcess
	admin *clientv3.Client
}

// handledRequests returns etcd's own count of received requests, including requests in
// streams.
func handledRequests(addr string) (n int64) {
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "grpc_server_msg_received_total") {
			continue
		}
		v, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		n += int64(v)
	}
	return n
}

func etcdURL(addr string) string { return "etcd://" + addr }

func etcdContenders() []contender {
	return []contender{
		{
			name: "concurrency.Mutex", open: openEtcdMutex, renews: true, notifies: true,
			deleteLock: func(s server, _, _ client, name string) error {
				return deleteKey(s.(*etcdServer).admin, name+"/", clientv3.WithFirstCreate()...)
			},
			endSession: func(s server, holder, _ client, _ string) error {
				return revoke(s.(*etcdServer).admin, holder.(*etcdMutex).sessions[0].Lease())
			},
		},
		{
			name: "pawl", open: openURL(etcdURL), renews: true, notifies: true,
			deleteLock: func(s server, _, _ client, name string) error {
				return deleteKey(s.(*etcdServer).admin, "pawl//entry/"+name)
			},
			endSession: func(s server, _, _ client, _ string) error {
				c := s.(*etcdServer).admin
				all, err := c.Leases(context.Background())
				if err != nil {
					return err
				}
				for _, lease := range all.Leases {
					err = errors.Join(err, revoke(c, lease.ID))
				}
				return err
			},
		},
	}
}

func revoke(c *clientv3.Client, lease clientv3.LeaseID) error {
	_, err := c.Revoke(context.Background(), lease)
	return err
}

// deleteKey deletes the only key that a Get with these options finds.
func deleteKey(c *clientv3.Client, key string, options ...clientv3.OpOption) error {
	found, err := c.Get(context.Background(), key, options...)
	if err != nil {
		return err
	}
	if len(found.Kvs) != 1 {
		return fmt.Errorf("found %d keys %q, want 1", len(found.Kvs), key)
	}
	_, err = c.Delete(context.Background(), string(found.Kvs[0].Key))
	return err
}

// etcdMutex is etcd's own lock. Two locks of one session do not exclude each other, so
// each goroutine that wants the same name needs its own session.
type etcdMutex struct {
	client *clientv3.Client
	ttl    time.Duration

	mu       sync.Mutex // protects the fields below
	sessions []*concurrency.Session
	used     map[string]map[int]bool // the indexes of the used sessions, by name
}

func openEtcdMutex(addr string, ttl time.Duration) (client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	e := &etcdMutex{client: c, ttl: ttl, used: map[string]map[int]bool{}}
	return e, e.addSession()
}

func (e *etcdMutex) addSession() error {
	s, err := concurrency.NewSession(e.client, concurrency.WithTTL(int(e.ttl/time.Second)))
	if err == nil {
		e.sessions = append(e.sessions, s)
	}
	return err
}

// session returns a session that no other lock of this name uses. putBack returns it.
func (e *etcdMutex) session(name string) (s *concurrency.Session, putBack func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	used := e.used[name]
	if used == nil {
		used = map[int]bool{}
		e.used[name] = used
	}
	i := 0
	for used[i] {
		i++
	}
	if i == len(e.sessions) {
		if err := e.addSession(); err != nil {
			return nil, nil, err
		}
	}
	used[i] = true
	return e.sessions[i], func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if delete(used, i); len(used) == 0 {
			delete(e.used, name)
		}
	}, nil
}

func (e *etcdMutex) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	s, putBack, err := e.session(name)
	if err != nil {
		return nil, nil, err
	}
	m := concurrency.NewMutex(s, name)
	if err := m.Lock(ctx); err != nil {
		putBack()
		return nil, nil, err
	}
	return func() error { defer putBack(); return m.Unlock(context.Background()) }, s.Done, nil
}

func (e *etcdMutex) close() {
	for _, s := range e.sessions {
		_ = s.Close()
	}
	_ = e.client.Close()
}
