// Package redisscript is the lock algorithm on Redis: scripts in Lua that give the same
// answers as locktable.Entry, what goes into them and comes out of them, and a driver
// over anything that can send them.
//
// There is one implementation of the algorithm, and there are two ways of sending:
// redislock sends through rueidis, goredislock through go-redis. Each of them is a
// [Sender].
//
// A claim comes in at acquire.go. subscribe.go says where its grant will be told, and
// tracking.go watches the name from then on, for deletions. retry.go sends it again where
// that is right, with an end by serverclock.go. coalesce.go sends it together with the
// steps of others, or send.go alone, packed by wire_arguments.go; prompt.go and direct.go
// see to it that the sender answers in time. wire_answers.go reads the answer, and
// confirm.go waits for replicas. The scripts are in lua, and sent has them as they are
// sent. doctor.go examines the servers.
package redisscript
