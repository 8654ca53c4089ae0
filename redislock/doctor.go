package redislock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// The doctor asks each server by itself.

// Servers implements redisscript.Sender. With Sentinel it returns the current master.
func (s *sender) Servers(context.Context) ([]redisscript.Server, error) {
	nodes := s.client.Nodes()
	if !s.Cluster() {
		name := s.where
		for addr := range nodes {
			if len(nodes) == 1 {
				name = addr
			}
		}
		return []redisscript.Server{{Name: name, Do: asking(s.client)}}, nil
	}
	var all []redisscript.Server
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		all = append(all, redisscript.Server{Name: addr, Do: asking(nodes[addr])})
	}
	return all, nil
}

func asking(client rueidis.Client) func(ctx context.Context, command ...string) (string, error) {
	return func(ctx context.Context, command ...string) (string, error) {
		m, err := client.Do(ctx, client.B().Arbitrary(command...).Build()).ToMessage()
		if err != nil {
			return "", inFull(err)
		}
		return flat(m), nil
	}
}

// inFull puts back the ERR that rueidis removes from the start of an error. The doctor
// takes an error that begins with a word in capitals as an answer of the server.
func inFull(err error) error {
	said, answered := rueidis.IsRedisErr(err)
	if !answered {
		return err
	}
	if first, _, _ := strings.Cut(said.Error(), " "); first == strings.ToUpper(first) {
		return err
	}
	return fmt.Errorf("ERR %w", err)
}

// flat returns an answer as text, with one line for each element of a list or a map.
func flat(m rueidis.RedisMessage) string {
	if list, err := m.ToArray(); err == nil {
		text := ""
		for _, e := range list {
			text += flat(e) + "\n"
		}
		return text
	}
	if pairs, err := m.ToMap(); err == nil {
		text := ""
		for k, v := range pairs {
			text += k + "\n" + flat(v) + "\n"
		}
		return text
	}
	text, err := m.ToString()
	if err != nil {
		text = m.String()
	}
	return text
}

// User implements redisscript.Authenticated.
func (s *sender) User() (name string, password bool) { return s.user, s.password }

// sentinels opens connections of its own to the Sentinels, because rueidis does not share
// its own.
type sentinels struct {
	group string
	addrs []string
	o     rueidis.ClientOption
}

// newSentinels returns nil for a client without Sentinels.
func newSentinels(o *rueidis.ClientOption) *sentinels {
	if o.Sentinel.MasterSet == "" {
		return nil
	}
	own := *o
	own.Username, own.Password, own.ClientName = o.Sentinel.Username, o.Sentinel.Password, o.Sentinel.ClientName
	own.SelectDB, own.Sentinel = 0, rueidis.SentinelOption{}
	own.ForceSingleClient, own.DisableCache = true, true
	own.Dialer.Timeout = min(own.Dialer.Timeout, time.Second)
	return &sentinels{o.Sentinel.MasterSet, o.InitAddress, own}
}

// Sentinels implements redisscript.Guarded.
func (s *sender) Sentinels() (group string, all []redisscript.Server) {
	if s.sentinels == nil {
		return "", nil
	}
	for _, addr := range s.sentinels.addrs {
		o := s.sentinels.o
		o.InitAddress = []string{addr}
		all = append(all, redisscript.Server{Name: addr, Do: func(ctx context.Context, command ...string) (string, error) {
			client, err := rueidis.NewClient(o)
			if err != nil {
				return "", err
			}
			defer client.Close()
			return asking(client)(ctx, command...)
		}})
	}
	return s.sentinels.group, all
}

var (
	_ redisscript.Guarded       = (*sender)(nil)
	_ redisscript.Authenticated = (*sender)(nil)
)
