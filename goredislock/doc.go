// Package goredislock keeps locks in Redis or Valkey through a go-redis client: the same
// scripts, the same keys and the same answers as redislock, whose page says what the
// server needs and what a lock costs. Clients of both packages exclude each other. Most
// programs need only New:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	d, err := goredislock.New(client, nil)
//	locks, err := pawl.New(d, nil)
//
// It has no URLs: redis: is redislock's. What can be set is in the client's own options,
// and in [Options]: a prefix for the keys, for how long fences are remembered, whether to
// subscribe, and how many replicas are waited for.
//
// # Which clients will do?
//
// *redis.Client, with Sentinel too (NewFailoverClient), and *redis.ClusterClient. A
// *redis.Ring is refused: it forgets the locks of a server that it cannot reach, and asks
// another.
//
// # What is different from redislock?
//
// go-redis cannot tell of keys that somebody deleted or evicted: a holder hears of that
// by its next renewal. A command takes about three times as long when many goroutines
// send. That is felt in a cluster; elsewhere they share scripts, and both packages are as
// fast. In a cluster it does not subscribe again by itself after a slot has moved
// (v9.23.0): a waiter in that slot is then woken by its own next look.
//
// # Do its retries matter?
//
// No: a step is sent once, whatever MaxRetries says, and once more if its connection
// turns out to be dead, or all that were idle do. The client over the driver asks again
// with the same token.
//
// # What ends a call?
//
// Its ctx, within some milliseconds, whatever ContextTimeoutEnabled says. The request
// goes on in the background until go-redis gives it up; it is not granted any more when
// it comes after the ctx's deadline.
package goredislock
