package flaky

import (
	"os"
	"testing"
)

// TestOnce fails the first time that it runs.
func TestOnce(t *testing.T) {
	f, err := os.OpenFile(os.Getenv("PLANTED_FIRST"), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = f.Close()
		t.Error("the first time")
	}
}
