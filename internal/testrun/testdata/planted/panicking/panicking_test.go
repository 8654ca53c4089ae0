package panicking

import "testing"

func TestPanic(*testing.T) { panic("planted") }
