package goredislock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// Servers implements redisscript.Sender. With Sentinel it returns the current master.
func (s *sender) Servers(ctx context.Context) ([]redisscript.Server, error) {
	if s.cluster == nil {
		return []redisscript.Server{{Name: s.where, Do: asking(s.client)}}, nil
	}
	var mu sync.Mutex // ForEachShard calls the function in several goroutines
	var all []redisscript.Server
	err := s.cluster.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, redisscript.Server{Name: node.Options().Addr, Do: asking(node)})
		return nil
	})
	slices.SortFunc(all, func(a, b redisscript.Server) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

func asking(client redis.UniversalClient) func(ctx context.Context, command ...string) (string, error) {
	return func(ctx context.Context, command ...string) (string, error) {
		args := make([]any, len(command))
		for i, word := range command {
			args[i] = word
		}
		v, err := client.Do(ctx, args...).Result()
		return flat(v), err
	}
}

// flat returns an answer as text, with one line for each element of a list or a map.
func flat(v any) string {
	var b strings.Builder
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			b.WriteString(flat(e) + "\n")
		}
	case map[any]any:
		for k, e := range v {
			b.WriteString(flat(k) + "\n" + flat(e) + "\n")
		}
	case nil:
	default:
		return fmt.Sprint(v)
	}
	return b.String()
}
