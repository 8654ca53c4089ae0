package hang

import (
	"testing"
	"time"
)

func TestHang(*testing.T) { time.Sleep(time.Hour) }
