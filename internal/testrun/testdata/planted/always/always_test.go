package always

import "testing"

func TestAlways(t *testing.T) { t.Error("each time") }
