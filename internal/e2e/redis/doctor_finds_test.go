package redis_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The test worsens the settings of one server one after the other, and examines it
// through both packages.
func TestTheDoctorFindsEachBadSetting(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	goRedis := overGoRedis(t, redis.NewClient(&redis.Options{Addr: server.Addr}))
	d := openDriver(t, "redis://"+server.Addr)
	for _, bad := range []struct{ set, good, want, says string }{
		{"maxmemory-policy allkeys-lru maxmemory 100mb", "noeviction 0", "error maxmemory-policy", "allkeys-lru"},
		{"maxmemory-policy volatile-ttl maxmemory 100mb", "noeviction 0", "error maxmemory-policy", "volatile-ttl"},
		{"maxmemory-policy allkeys-random", "noeviction", "info maxmemory-policy", "once maxmemory"},
		{"maxmemory 1000000", "0", "warning maxmemory", "nine tenths"},
		{"appendfsync no", "everysec", "info persistence", "appendfsync"},
		{}, // all settings are good again
		{"appendonly no", "", "warning persistence", "loses all locks"},
	} {
		words, good := strings.Fields(bad.set), strings.Fields(bad.good)
		for i := 0; i < len(words); i += 2 {
			server.Do("CONFIG", "SET", words[i], words[i+1])
		}
		if bad.set == "" {
			servertest.FindsOnly(t, d)
			servertest.FindsOnly(t, goRedis, "info tracking", "go-redis")
			continue
		}
		for who, doctor := range map[string]driver.Diagnoser{"redislock": d, "goredislock": goRedis} {
			if found := servertest.FindingsOf(t, doctor); !found.Have(bad.want, server.Addr, bad.says) {
				t.Errorf("%s with %s: %v; want %s, with %q", who, bad.set, found, bad.want, bad.says)
			}
		}
		for i := range good {
			server.Do("CONFIG", "SET", words[2*i], good[i])
		}
	}
	server.Do("CONFIG", "SET", "save", "3600 1")
	servertest.Finds(t, d, "warning persistence", "save 3600 1")
}

func TestTheDoctorExaminesEachMasterOfACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	for _, node := range nodes[:2] {
		node.Do("CONFIG", "SET", "appendonly", "yes")
		basictest.Eventually(t, "the log is rewritten", func() bool { // its child must not write after the test
			return redistest.Field(node.Do("INFO", "persistence"), "aof_rewrite_in_progress") == "0"
		})
	}
	nodes[1].Do("CONFIG", "SET", "maxmemory", "100mb")
	nodes[1].Do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	goRedis := overGoRedis(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}}))
	for who, doctor := range map[string]driver.Diagnoser{"redislock": openDriver(t, "redis://"+nodes[0].Addr), "goredislock": goRedis} {
		found := servertest.FindingsOf(t, doctor)
		if !found.Have("error maxmemory-policy", nodes[1].Addr, "volatile-lru") || !found.Have("warning persistence", nodes[2].Addr) ||
			!found.Have("info replicas", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr) {
			t.Errorf("%s: %v", who, found)
		}
		for _, f := range found {
			if strings.HasPrefix(f, "error") && (strings.Contains(f, nodes[0].Addr) || strings.Contains(f, nodes[2].Addr)) {
				t.Errorf("%s: %s; want nothing of the other nodes", who, f)
			}
		}
	}
	alone := openDriver(t, "redis://"+nodes[0].Addr+"?cluster=false")
	servertest.Finds(t, alone, "error cluster", "as a single server")
	// The driver is open before the node dies: it knows the node, and the node does not
	// answer.
	d := openDriver(t, "redis://"+nodes[0].Addr)
	nodes[2].Kill()
	basictest.Eventually(t, "the other nodes have noticed", func() bool {
		found := servertest.FindingsOf(t, d)
		return found.Have("error server", nodes[2].Addr, "does not answer") && found.Have("error cluster", nodes[0].Addr, "cluster_state is fail")
	})
}

// overGoRedis returns a driver. The end of the test closes it and its client.
func overGoRedis(t *testing.T, client redis.UniversalClient) *redisscript.Driver {
	t.Helper()
	d, err := asDriver(goredislock.New(client, nil))
	noError(t, err)
	t.Cleanup(func() { _, _ = d.Close(), client.Close() })
	return d
}
