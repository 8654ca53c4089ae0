package redislock_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// rueidis panics, which ends the process, when it unsubscribes while the server answers
// PING with an error.
func TestADriverIsClosedWhileTheServerIsInTrouble(t *testing.T) {
	nightly(t, "bad days")
	for _, day := range redistest.BadDays {
		if day.Cause != "MISCONF" && day.Cause != "MASTERDOWN" {
			continue
		}
		for protocol, options := range map[string]rueidis.ClientOption{
			"RESP3": {DisableCache: true}, "RESP2": {DisableCache: true, AlwaysRESP2: true},
		} {
			t.Run(day.Name+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				server := day.Start(t)
				options.InitAddress = []string{server.Addr}
				client, err := rueidis.NewClient(options)
				noError(t, err)
				defer client.Close()
				for range 2 {
					d, err := concrete(redislock.New(client, nil))
					noError(t, err)
					c := mutex("job")
					gets(t, d, c)
					releases(t, d, c)
					day.Begin(server)
					if err := d.Close(); err != nil {
						t.Error(err)
					}
					for range 3 {
						client.Do(ctx, client.B().Ping().Build()) // the panic comes with the next answers
					}
					day.End(server)
				}
			})
		}
	}
}
