package redislock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The server reports to each of the clients that share a name the changes of the others,
// which are no news: each costs arming the name again, now and then, and no script.
func TestHoldersOfOneNameCostEachOtherNothing(t *testing.T) {
	nightly(t, "crowds")
	t.Parallel()
	server := redistest.Start(t)
	const clients, each, cycles = 10, 5, 200
	permit := func() driver.Claim {
		c := mutex("pool")
		c.Weight, c.Limit = 1, 1000
		return c
	}
	var holders []*redisscript.Driver
	var held []driver.Claim // by each of them
	for range clients {
		d := openDriver(t, "redis://"+server.Addr)
		holders, held = append(holders, d), append(held, permit())
		gets(t, d, held[len(held)-1])
		for range each - 1 {
			gets(t, d, permit())
		}
	}
	one := openDriver(t, "redis://"+server.Addr)
	gets(t, one, permit())
	time.Sleep(100 * time.Millisecond) // all are armed
	lost := make(chan driver.Signal, 1000)
	for _, d := range holders {
		t.Cleanup(d.Listen(func(s driver.Signal) { lost <- s }))
	}
	server.Do("CONFIG", "RESETSTAT")
	began := time.Now()
	for range cycles {
		c := permit()
		gets(t, one, c)
		releases(t, one, c)
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(began)
	time.Sleep(50 * time.Millisecond)
	if n := commands(server, "evalsha", "eval"); n > 2*cycles+2 {
		t.Errorf("%d scripts for %d cycles", n, cycles)
	}
	most := (clients + 1) * (4 + int(2*took/time.Second))
	if n := commands(server, "client|caching"); n > most {
		t.Errorf("names were armed %d times in %v, by %d clients", n, took, clients+1)
	}
	for len(lost) > 0 {
		if s := <-lost; s.Kind == driver.SignalLost {
			t.Fatal("somebody was told to look after its lease")
		}
	}

	var heard []<-chan driver.Signal
	for _, d := range holders {
		heard = append(heard, listen(t, d))
	}
	server.Do("DEL", "pawl:{pool}s")
	for i, c := range held { // they are still watched
		hear(t, heard[i], driver.SignalLost, c.Token)
	}
}
