//go:build unix

package doctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// startVariable makes the test binary the program of the pages docs/backends/*.md, which
// opens PAWL_URL.
const startVariable = "PAWL_DOCTEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(startVariable) != "" {
		err := deploy(context.Background())
		// The client of the pages gives up sooner than a machine may stand still.
		for began := time.Now(); errors.Is(err, pawl.ErrUnavailable) && time.Since(began) < 2*time.Minute; {
			err = deploy(context.Background())
		}
		if err != nil {
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
