// Command etcd is the real etcd server, for the tests of etcdlock. It has its own module,
// so that no other module depends on the server.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
