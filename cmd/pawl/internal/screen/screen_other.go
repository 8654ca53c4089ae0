//go:build !unix

package screen

import (
	"errors"
	"os"
	"syscall"
)

// A Screen is a terminal under the control of this program. This system has none.
type Screen struct{}

// Open fails with errors.ErrUnsupported.
func Open(*os.File, *os.File) (*Screen, error) { return nil, errors.ErrUnsupported }

// Drawable is false.
func Drawable(*os.File, *os.File) bool { return false }

// Size returns a default.
func (*Screen) Size() (width, height int) { return 80, 24 }

// Events yields nothing.
func (*Screen) Events() <-chan Event { return nil }

// Draw does nothing.
func (*Screen) Draw([]Line) {}

// Go runs f in a goroutine.
func (*Screen) Go(f func()) { go f() }

// CloseOnPanic does nothing.
func (*Screen) CloseOnPanic() {}

// Close does nothing.
func (*Screen) Close() error { return nil }

// Suspend does nothing.
func (*Screen) Suspend() {}

// EndSignals are the signals that should end the process.
var EndSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
