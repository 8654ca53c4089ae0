package main

import (
	"os"
	"path/filepath"
	"time"

	_ "github.com/pawl-go/pawl/sqlitelock"
)

// localEngines have no server and no peers: -growth only measures them.
var localEngines = []engine{
	{name: "mem", start: startMemory, url: func(addr string) string { return "mem:" + addr }, contenders: noPeers},
	{name: "sqlite", start: startSQLite, url: func(addr string) string { return "sqlite:" + addr }, contenders: noPeers},
}

func noPeers() []contender { return nil }

// A place is the address of locks that need no server: a name in this process, or a file.
type place struct{ addr, dir string }

func startMemory() (server, error) {
	return place{addr: "growth" + time.Now().Format("150405.000000")}, nil
}

func startSQLite() (server, error) {
	dir, err := os.MkdirTemp("", "pawl-bench")
	return place{filepath.Join(dir, "locks.db"), dir}, err
}

func (p place) address() string       { return p.addr }
func (p place) cpu() time.Duration    { return 0 }
func (p place) calls(contender) int64 { return 0 }

func (p place) stop() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}
