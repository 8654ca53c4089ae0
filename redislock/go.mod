module github.com/pawl-go/pawl/redislock

go 1.26.0

require (
	github.com/pawl-go/pawl v0.0.0
	github.com/redis/rueidis v1.0.77
)

require (
	golang.org/x/sys v0.47.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
