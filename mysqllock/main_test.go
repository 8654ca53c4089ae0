package mysqllock_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	code := m.Run()
	mysqltest.Stop()
	if code == 0 {
		if err := leaktest.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
