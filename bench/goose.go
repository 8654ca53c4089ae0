package main

import (
	"context"
	"database/sql"
	"hash/crc64"
	"time"

	"github.com/pressly/goose/v3/lock"
)

// goose, the migration tool, has two locks: a row that it renews, and a session's. Some
// settings are better than its defaults: both locks poll each second, not each 5 s, and
// goose renews after a third of the TTL, because its default, 5 s, is too late for some
// TTLs. Each lock has its own id. goose tries a failed unlock twice, not for a minute.
func openGooseTable(driver string, url func(string) string, newLocker func(...lock.TableLockerOption) (lock.Locker, error)) func(string, time.Duration) (client, error) {
	return func(addr string, ttl time.Duration) (client, error) {
		db, err := openDB(driver, url(addr))
		return &gooseTable{db, ttl, newLocker}, err
	}
}

type gooseTable struct {
	db        *sql.DB
	ttl       time.Duration
	newLocker func(...lock.TableLockerOption) (lock.Locker, error)
}

func (g *gooseTable) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	l, err := g.newLocker(lock.WithTableLockID(gooseLockID(name)), lock.WithTableLeaseDuration(g.ttl),
		lock.WithTableHeartbeatInterval(g.ttl/3), lock.WithTableUnlockTimeout(100*time.Millisecond, 1), lock.WithTableLockTimeout(time.Second, 600))
	if err == nil {
		err = l.Lock(ctx, g.db)
	}
	if err != nil {
		return nil, nil, err
	}
	return func() error { return l.Unlock(context.Background(), g.db) }, nil, nil
}

func (g *gooseTable) close() { _ = g.db.Close() }

func gooseLockID(name string) int64 {
	return int64(crc64.Checksum([]byte(name), crc64.MakeTable(crc64.ISO)) >> 1)
}

func openGooseSession(driver string, url func(string) string) func(string, time.Duration) (client, error) {
	return func(addr string, _ time.Duration) (client, error) {
		db, err := sql.Open(driver, url(addr))
		if err == nil {
			db.SetMaxIdleConns(64)
		}
		return &gooseSession{db}, err
	}
}

type gooseSession struct{ db *sql.DB }

func (g *gooseSession) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	l, err := lock.NewPostgresSessionLocker(lock.WithLockID(gooseLockID(name)), lock.WithLockTimeout(1, 600))
	if err != nil {
		return nil, nil, err
	}
	c, err := g.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := l.SessionLock(ctx, c); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return func() error {
		err := l.SessionUnlock(context.Background(), c)
		_ = c.Close()
		return err
	}, nil, nil
}

func (g *gooseSession) close() { _ = g.db.Close() }
