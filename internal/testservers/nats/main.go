// Command nats is nats-server, for the tests of natslock. It has its own module, so that
// no other module depends on the server.
package main

import (
	"flag"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	flags := flag.NewFlagSet("nats-server", flag.ExitOnError)
	options, err := server.ConfigureOptions(flags, os.Args[1:], server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
}
