// Command etcd is the real etcd server, built from its module for the tests of etcdlock.
// It is a module of its own, so that no other module depends on it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
