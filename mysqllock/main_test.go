package mysqllock_test

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

var ctx = context.Background()

func TestMain(m *testing.M) { leaktest.Main(leaktest.Then(m, mysqltest.Stop)) }
