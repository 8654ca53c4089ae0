package screen

import (
	"os"

	"github.com/gdamore/tcell/v3"
)

func newTerminal(o tcell.TerminfoScreenOption) (tcell.Screen, error) { return tcell.NewScreen(o) }

func (*Screen) catchSignals() {}

func (*Screen) handleSignal(os.Signal) {}

// Suspend does nothing: Windows has no Ctrl-Z.
func (*Screen) Suspend(bool) {}
