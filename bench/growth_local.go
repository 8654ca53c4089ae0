package main

import (
	"os"
	"path/filepath"
	"time"

	_ "github.com/pawl-go/pawl/sqlitelock"
)

// localEngines have no server and no peers, so only -growth measures them.
var localEngines = []engine{
	{name: "mem", start: startMemory, url: func(addr string) string { return "mem:" + addr }, contenders: noPeers},
	{name: "sqlite", start: startSQLite, url: func(addr string) string { return "sqlite:" + addr }, contenders: noPeers},
}

func noPeers() []contender { return nil }

// A localServer stands for locks without a server: a name in this process, or a file.
type localServer struct{ addr, dir string }

func startMemory() (server, error) {
	return localServer{addr: "growth" + time.Now().Format("150405.000000")}, nil
}

func startSQLite() (server, error) {
	dir, err := os.MkdirTemp("", "pawl-bench")
	return localServer{filepath.Join(dir, "locks.db"), dir}, err
}

func (p localServer) address() string       { return p.addr }
func (p localServer) cpu() time.Duration    { return 0 }
func (p localServer) calls(contender) int64 { return 0 }

func (p localServer) stop() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}
