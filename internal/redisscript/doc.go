// Package redisscript is the lock algorithm on Redis: scripts in Lua that return the same
// answers as locktable.Entry, the encoding of arguments and answers, and a driver over
// any client library that can send scripts.
//
// Two packages use it: redislock sends through rueidis, goredislock through go-redis.
// Each of them makes a [Client]: a [Conn], and fields for the abilities of its library.
//
// A claim begins in acquire.go. subscribe.go subscribes to the channel on which the
// server announces grants, and tracking.go watches the name for deletions. retry.go sends
// the claim again where that is safe, with an end that serverclock.go computes.
// coalesce.go sends the claim in one script with the steps of other goroutines, or
// send.go sends it alone. wire_arguments.go encodes the arguments, and bounded.go ends
// the request in time. wire_answers.go reads the answer, and confirm.go waits for
// replicas. script.go loads the scripts. Their source is in lua; the text that is sent,
// without comments, is in sent. doctor.go examines the servers.
package redisscript
