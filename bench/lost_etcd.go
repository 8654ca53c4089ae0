package main

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// etcdClaimer uses concurrency.Mutex of etcd as the package's documentation says. Each
// held or awaited lock has its own session, because two locks of one session do not
// exclude each other. Done notifies the holder of the loss, as issue 6127 says. After the
// end of a session or a failed Lock, the session is closed, and the next lock gets a new
// one.
//
// etcd can check a fence only for its own data, by a Txn with IsOwner. The register of a
// run is not in etcd, so the fence is the revision in the header of Lock's response.
type etcdClaimer struct {
	client *clientv3.Client
	ttl    time.Duration

	mu   sync.Mutex
	free []*concurrency.Session
}

func openEtcdClaimer(addr string, ttl time.Duration) (claimer, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	return &etcdClaimer{client: c, ttl: ttl}, nil
}

// session returns a session that no other lock uses.
func (e *etcdClaimer) session(ctx context.Context) (*concurrency.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.free) > 0 {
		s := e.free[len(e.free)-1]
		e.free = e.free[:len(e.free)-1]
		if !hasEnded(s) {
			return s, nil
		}
	}
	leaseCtx, detach, end := newLeaseCtx(ctx)
	e.mu.Unlock()
	s, err := concurrency.NewSession(e.client, concurrency.WithTTL(int(e.ttl/time.Second)), concurrency.WithContext(leaseCtx))
	e.mu.Lock()
	if err == nil && !detach() {
		err = ctx.Err()
	}
	if err != nil {
		end()
	}
	return s, err
}

func hasEnded(s *concurrency.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// giveBack keeps a session for the next lock if it is usable.
func (e *etcdClaimer) giveBack(s *concurrency.Session, usable bool) {
	if !usable || hasEnded(s) {
		go func() { _ = s.Close() }()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.free = append(e.free, s)
}

func (e *etcdClaimer) claim(ctx context.Context, name string, try bool) (worker.Lease, error) {
	s, err := e.session(ctx)
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(s, name)
	lock := m.Lock
	if try {
		lock = m.TryLock
	}
	if err := lock(ctx); err != nil {
		e.giveBack(s, errors.Is(err, concurrency.ErrLocked))
		if errors.Is(err, concurrency.ErrLocked) {
			return nil, errHeld
		}
		return nil, err
	}
	return etcdLease{e, s, m, uint64(m.Header().Revision)}, nil
}

func (e *etcdClaimer) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.free {
		s.Orphan()
	}
	_ = e.client.Close()
}

type etcdLease struct {
	claimer  *etcdClaimer
	session  *concurrency.Session
	mutex    *concurrency.Mutex
	revision uint64
}

func (l etcdLease) Fence() uint64         { return l.revision }
func (l etcdLease) Done() <-chan struct{} { return l.session.Done() }

func (l etcdLease) Err() error {
	if hasEnded(l.session) {
		return errLost
	}
	return nil
}

// Release waits at most 2 TTLs for a server that is down, because the lease then expires.
func (l etcdLease) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*l.claimer.ttl)
	defer cancel()
	lost := l.Err()
	err := l.mutex.Unlock(ctx)
	l.claimer.giveBack(l.session, err == nil)
	if lost != nil {
		return errLost
	}
	return err
}
