package servertest

import "testing"

// No two processes use the same port, neither for a server nor for a cluster bus.
func TestRangesOfPortsDoNotOverlap(t *testing.T) {
	const firstOutgoing = 32768 // on Linux, if ip_local_port_range is not set
	owners := map[int]int{}
	for process := range portRanges {
		own := []int{firstPort - portRanges + process} // its guard
		for i := range portsInRange {
			port := firstPort + process*portsInRange + i
			own = append(own, port, port+busOffset)
		}
		for _, port := range own {
			if other, taken := owners[port]; taken {
				t.Fatalf("port %d belongs to the processes %d and %d", port, other, process)
			}
			if owners[port] = process; port < 1024 || port >= firstOutgoing {
				t.Fatalf("port %d belongs to process %d and to the system", port, process)
			}
		}
	}
}
