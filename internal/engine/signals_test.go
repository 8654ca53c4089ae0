package engine_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// FuzzSignal checks that no text makes DecodeSignal panic, and that it decodes an encoded
// signal to the same signal.
func FuzzSignal(f *testing.F) {
	signal := driver.Signal{Kind: driver.SignalGranted, Token: driver.Token{1, 15: 0xff}, Fence: 1 << 63, Fences: driver.MaxFences}
	text := engine.EncodeSignal(signal)
	if back, ok := engine.DecodeSignal(text); !ok || back != signal {
		f.Fatalf("%q was read as %+v, %t", text, back, ok)
	}
	f.Add(text)
	for _, bad := range []string{"", "1", "1 00 1 1", text + " ", text + "0", "300" + text[1:], "-1" + text[1:]} {
		if s, ok := engine.DecodeSignal(bad); ok || s != (driver.Signal{}) {
			f.Errorf("%q was read as %+v, %t", bad, s, ok)
		}
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := engine.DecodeSignal(text)
		if !ok {
			return
		}
		if again, ok := engine.DecodeSignal(engine.EncodeSignal(s)); !ok || again != s {
			t.Errorf("%q was read as %+v, and that as %+v", text, s, again)
		}
	})
}
