package goredislock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redistest"
)

func TestRequestsOnABadDayReturnTypedErrorsAndRecover(t *testing.T) {
	skipIfShort(t, "bad days")
	for _, day := range redistest.BadDays {
		t.Run(day.Name, func(t *testing.T) {
			t.Parallel()
			if day.Name == "too many clients" {
				// go-redis takes the error for the answer of a server that is too old
				// for HELLO
				day.Cause, day.Hint = "", ""
			}
			server := day.Start(t)
			o, err := redis.ParseURL("redis://" + day.UserInfo() + server.Addr)
			noError(t, err)
			d := newDriver(t, redis.NewClient(o))
			defer d.Close()
			day.Check(t, d, server, nil)
		})
	}
}

func TestRequestsToAClusterThatIsDownReturnTypedErrorsAndRecover(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	server, day := redistest.StartOneNodeCluster(t), redistest.ClusterDown
	d := newDriver(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}}))
	defer d.Close()
	day.Check(t, d, server, nil)
}
