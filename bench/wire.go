package main

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// countConnections returns the number of connections that the system counts for a server
// at addr, or 0 without /proc. It sends the server nothing, so it works for every engine.
func countConnections(addr string) (n int) {
	_, port, _ := net.SplitHostPort(addr)
	number, _ := strconv.ParseUint(port, 10, 16)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			// sl, local address, remote address, state
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "01" {
				continue
			}
			_, local, _ := strings.Cut(f[1], ":")
			if p, err := strconv.ParseUint(local, 16, 16); err == nil && p == number {
				n++
			}
		}
	}
	return n
}
