package prove

import (
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The kinds of faults, by the thing that suffers them.
var (
	ofProcesses = []string{history.Stop, history.Kill, history.Crash, history.Overstay}
	ofNetwork   = []string{history.Cut, history.Delay, history.Reorder, history.Swallow, history.Silence}
	ofServer    = []string{history.ServerStop, history.ServerKill, history.ServerRestart, history.FailOver}
)

func isNetwork(kind string) bool { return slices.Contains(ofNetwork, kind) }
func isServers(kind string) bool { return slices.Contains(ofServer, kind) }

// Kinds lists all kinds of faults.
func Kinds() []string { return slices.Concat(ofProcesses, ofNetwork, ofServer) }

// Possible lists the kinds that can be done: to processes always; to the network if a
// proxy can stand in it; to the server as far as it is in the user's hands.
func Possible(network bool, s ServerOptions) []string {
	kinds := slices.Clone(ofProcesses)
	if network {
		kinds = append(kinds, ofNetwork...)
	}
	if s.Command != "" || s.PID > 0 {
		kinds = append(kinds, history.ServerStop)
	}
	if s.Command != "" {
		kinds = append(kinds, history.ServerKill, history.ServerRestart)
	}
	if s.FailOver != "" {
		kinds = append(kinds, history.FailOver)
	}
	return kinds
}

// ServerOptions say what may be done to the server.
type ServerOptions struct {
	Command  string // starts the server, for the shell; empty if the server runs already
	PID      int    // the process of the server, if the run may stop it; otherwise 0
	FailOver string // the command that fails it over; empty if there is none
}
