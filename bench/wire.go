package main

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// established returns the number of connections that a server at addr has by the count of
// the system, or 0 where there is no /proc. It sends the server nothing, so it is the
// same for every engine.
func established(addr string) (n int) {
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
