package mysqllock_test

import (
	"context"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	code := m.Run()
	mysqltest.Stop()
	os.Exit(code)
}
