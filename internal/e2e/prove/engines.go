//go:build unix

package main

import (
	"path/filepath"
	"slices"
)

// An engine is a backend on the servers that it needs.
type engine struct {
	name  string
	what  string // in the table
	start func(l *lab) setup
}

// A setup is the input of the command on an engine.
type setup struct {
	url   string
	args  []string
	fault func() // what --failover-cmd does; nil if there is none
}

var allEngines = []engine{
	{"memory", "memory", func(*lab) setup { return setup{url: "mem:"} }},
	{"sqlite", "SQLite", func(l *lab) setup { return setup{url: "sqlite:" + filepath.Join(l.TempDir(), "locks.db")} }},
	{"redis", "Redis, `appendfsync always`", startRedis},
	{"cluster", "Redis Cluster of 3 masters", startCluster},
	{"sentinel", "Redis behind Sentinel, which may forget", startSentinel},
	{"redlock", "quorum of 3 Redis servers", startRedlock},
	{"postgres", "PostgreSQL", startPostgres},
	{"mysql", "MariaDB", startMySQL},
	{"etcd", "etcd, 3 members", startEtcd},
	{"nats", "NATS, 3 replicas", startNATS},
	{"mongodb", "FerretDB, for MongoDB", startFerret},
}

func engineNames() []string {
	names := make([]string, len(allEngines))
	for i, e := range allEngines {
		names[i] = e.name
	}
	return names
}

func find(name string) *engine {
	i := slices.IndexFunc(allEngines, func(e engine) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return &allEngines[i]
}
