// Package goredislock keeps locks in Redis or Valkey through a go-redis client, with the
// scripts and keys of redislock. The documentation of redislock says what the server
// needs and what a lock costs. Clients of both packages exclude each other. Most programs
// need only New:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	d, err := goredislock.New(client, nil)
//	locks, err := pawl.New(d, nil)
//
// The package has no URLs: redis: is a scheme of redislock. The settings are the client's
// own options, and [Options]: a prefix for the keys, how long fences are remembered,
// whether to subscribe, and how many replicas have to acknowledge a grant.
//
// # Which clients are supported?
//
// Use a *redis.Client, also with Sentinel (NewFailoverClient), or a *redis.ClusterClient.
// New refuses a *redis.Ring: if a server cannot be reached, a Ring uses another one,
// which does not have the first one's locks.
//
// # What is different from redislock?
//
// go-redis cannot report keys that were deleted or evicted: a holder detects that with
// its next renewal. A command takes about three times as long when many goroutines send.
// That matters in a cluster only, because elsewhere the goroutines share scripts. In a
// cluster go-redis does not subscribe again by itself after a slot has moved (v9.23.0): a
// waiter in that slot then polls.
//
// # Do its retries matter?
//
// No. go-redis sends a step once, regardless of MaxRetries. If the connection is dead,
// the driver sends the step again. It repeats that while go-redis picks dead idle
// connections. The client above the driver repeats an attempt with the same token.
//
// # What ends a call?
//
// A call ends with its ctx, within some milliseconds, regardless of
// ContextTimeoutEnabled. The request goes on in the background until go-redis ends it.
// The server grants no claim after the deadline of ctx.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser, driver.AllAcquirer and driver.Diagnoser;
// [driver.As] finds them. In a cluster AcquireAll takes names of one slot only.
package goredislock
