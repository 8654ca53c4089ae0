package leak

import (
	"fmt"
	"os"
	"testing"
)

// The message of internal/leaktest.
func TestMain(m *testing.M) {
	m.Run()
	fmt.Fprintln(os.Stderr, "1 goroutines are left by the tests:")
	os.Exit(1)
}

func TestNothing(*testing.T) {}
