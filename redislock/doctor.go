package redislock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// A sentinel opens a connection for each request, because rueidis does not share its
// connection to the Sentinel.
type sentinel struct {
	redisscript.Conn // nil: only Do is implemented
	options          rueidis.ClientOption
}

// sentinels returns the Sentinels of a client, if any, and their name for the master.
func sentinels(o *rueidis.ClientOption) (all []redisscript.Node, masterSet string) {
	if o.Sentinel.MasterSet == "" {
		return nil, ""
	}
	options := *o
	options.Username, options.Password, options.ClientName = o.Sentinel.Username, o.Sentinel.Password, o.Sentinel.ClientName
	options.SelectDB, options.Sentinel = 0, rueidis.SentinelOption{}
	options.ForceSingleClient, options.DisableCache = true, true
	options.Dialer.Timeout = min(options.Dialer.Timeout, time.Second)
	for _, addr := range o.InitAddress {
		options.InitAddress = []string{addr}
		all = append(all, redisscript.Node{Name: addr, Conn: sentinel{options: options}})
	}
	return all, o.Sentinel.MasterSet
}

// Do implements redisscript.Conn.
func (s sentinel) Do(ctx context.Context, c redisscript.Command) redisscript.Reply {
	client, err := rueidis.NewClient(s.options)
	if err != nil {
		return redisscript.Reply{Err: err}
	}
	defer client.Close()
	return (&conn{client: client}).Do(ctx, c)
}
