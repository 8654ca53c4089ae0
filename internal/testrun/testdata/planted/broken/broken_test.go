package broken

import "testing"

func TestBroken(*testing.T) { undeclared() }
