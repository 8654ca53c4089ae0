package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/rueidis"
)

// raw is a minimal lock: SET NX PX, and a script that compares and deletes, through
// rueidis. It has no fence, no renewal and no queue. A client without the lock retries
// after a millisecond.
type raw struct {
	client rueidis.Client
	ttl    time.Duration
}

var compareAndDelete = rueidis.NewLuaScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

func openRaw(addr string, ttl time.Duration) (client, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	return &raw{c, ttl}, err
}

func (r *raw) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	token := rand.Text()
	for {
		err := r.client.Do(ctx, r.client.B().Set().Key(name).Value(token).Nx().Px(r.ttl).Build()).Error()
		if err == nil {
			return func() error {
				return compareAndDelete.Exec(context.Background(), r.client, []string{name}, []string{token}).Error()
			}, nil, nil
		}
		if !rueidis.IsRedisNil(err) {
			return nil, nil, err
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *raw) key(name string) string { return name }
func (r *raw) close()                 { r.client.Close() }
