package redislock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
)

// Each client that holds a name is notified of the others' changes, and ignores them:
// that costs arming the name again, at most a few times a second, and no script.
func TestHoldersOfOneNameCostEachOtherNothing(t *testing.T) {
	nightly(t, "crowds")
	t.Parallel()
	server := redistest.Start(t)
	const clients, perClient, cycles = 10, 5, 200
	permit := func() driver.Claim {
		c := mutex("pool")
		c.Weight, c.Limit = 1, 1000
		return c
	}
	var holders []*redisscript.Driver
	var held []driver.Claim // one by each driver
	for range clients {
		d := openDriver(t, "redis://"+server.Addr)
		holders, held = append(holders, d), append(held, permit())
		gets(t, d, held[len(held)-1])
		for range perClient - 1 {
			gets(t, d, permit())
		}
	}
	changing := openDriver(t, "redis://"+server.Addr)
	gets(t, changing, permit())
	time.Sleep(100 * time.Millisecond) // all are armed
	received := make(chan driver.Signal, 1000)
	for _, d := range holders {
		t.Cleanup(d.Listen(func(s driver.Signal) { received <- s }))
	}
	server.Do("CONFIG", "RESETSTAT")
	began := time.Now()
	for range cycles {
		c := permit()
		gets(t, changing, c)
		releases(t, changing, c)
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(began)
	time.Sleep(50 * time.Millisecond)
	if n := commands(server, "evalsha", "eval"); n > 2*cycles+2 {
		t.Errorf("%d scripts for %d cycles", n, cycles)
	}
	limit := (clients + 1) * (4 + int(2*took/time.Second))
	if n := commands(server, "client|caching"); n > limit {
		t.Errorf("names were armed %d times in %v, by %d clients", n, took, clients+1)
	}
	for len(received) > 0 {
		if s := <-received; s.Kind == driver.SignalLost {
			t.Fatal("a holder was told to check its lease")
		}
	}

	var signals []<-chan driver.Signal
	for _, d := range holders {
		signals = append(signals, listen(t, d))
	}
	server.Do("DEL", "pawl:{pool}s")
	for i, c := range held { // they are still tracked
		hear(t, signals[i], driver.SignalLost, c.Token)
	}
}
