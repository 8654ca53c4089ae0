//go:build unix

package doctest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
)

// startVariable makes the test binary the program of the pages docs/backends/*.md, which
// opens PAWL_URL.
const startVariable = "PAWL_DOCTEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(startVariable) != "" {
		if err := deploy(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	mysqltest.Stop()
	if commandFolder != "" {
		_ = os.RemoveAll(commandFolder)
	}
	os.Exit(code)
}
