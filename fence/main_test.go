package fence_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
