//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/redistest"
)

// The command works in the same way on every Redis set-up that a URL can name.
func TestRedis(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"Single":   func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr },
		"Sentinel": func(t *testing.T) string { return redistest.StartSentinelGroup(t).URL() },
		"Cluster":  func(t *testing.T) string { return "redis://" + addrs(redistest.StartCluster(t, 3)) },
		"Redlock": func(t *testing.T) string {
			return "redlock://" + addrs([]*redistest.Server{redistest.Start(t), redistest.Start(t), redistest.Start(t)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "Single" {
				skipIfShort(t, "several servers")
			}
			t.Parallel()
			runScripts(t, "testdata/redis", url(t))
		})
	}
}

func addrs(servers []*redistest.Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return strings.Join(all, ",")
}
