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

// deployVariable makes the test binary run deploy, the program of docs/backends/*.md.
const deployVariable = "PAWL_DOCTEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(deployVariable) != "" {
		err := deploy(context.Background())
		// The test machine may pause for longer than the client's default timeout.
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
