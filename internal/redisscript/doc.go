// Package redisscript is the lock algorithm on Redis: scripts in Lua that give the same
// answers as locktable.Entry, the encoding of their arguments and answers, and a driver
// over any client that can send them.
//
// There is one implementation of the algorithm, and there are two ways of sending:
// redislock sends through rueidis, goredislock through go-redis. Each of them makes a
// [Client], which is a [Conn] and the values that say what its library cannot do.
//
// A claim begins in acquire.go. subscribe.go subscribes to the channel on which the
// server announces its grant, and from then on tracking.go watches the name for
// deletions. retry.go sends the claim again where that is safe, with an end that
// serverclock.go computes. coalesce.go sends it together with the steps of other
// goroutines, or send.go sends it alone, packed by wire_arguments.go, and bounded.go
// makes sure that a call of the client ends in time. wire_answers.go reads the answer,
// and confirm.go waits for replicas. script.go loads the scripts: they are in lua, and
// without comments, as they are sent, in sent. doctor.go examines the servers.
package redisscript
