// Package redisscript is the lock algorithm on Redis: scripts in Lua that give the same answers as
// locktable.Entry, what goes into them and comes out of them, and a driver over anything that can send them.
//
// There is one implementation of the algorithm, and there are two ways of sending: redislock sends through rueidis,
// goredislock through go-redis. Each of them is a [Sender].
package redisscript
