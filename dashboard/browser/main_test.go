package browser

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopBrowser()
	removeCommand()
	os.Exit(code)
}
